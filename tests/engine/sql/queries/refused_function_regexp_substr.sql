SELECT regexp_substr(tail, '[0-9]+') FROM flights
-- refused 1:8: there is no function regexp_substr: write regexp_match(text, pattern)[1]
