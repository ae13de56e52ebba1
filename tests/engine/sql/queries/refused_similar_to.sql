SELECT id FROM flights WHERE ok AND tail NOT SIMILAR TO '(N|D)0%'
-- refused 1:46: SIMILAR TO would be a regular expression of any part of the text: write LIKE, or ~ '^(San|Santa) '
