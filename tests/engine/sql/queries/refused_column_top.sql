SELECT id, top FROM (SELECT id, alt AS "top" FROM flights)
-- refused 1:12: top is a word of SQL: write "top", in double quotes
