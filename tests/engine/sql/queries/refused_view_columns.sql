CREATE VIEW v (a) AS SELECT id FROM flights; SELECT a FROM v
-- refused 1:15: the columns of a view have the names of its items: write SELECT ... AS name
