CREATE TABLE v (a BIGINT) AS SELECT id FROM flights; SELECT a FROM v
-- refused 1:27: a table AS a query has the columns and types of its items: write CAST(... AS ...) AS name there, and leave out what is before AS
