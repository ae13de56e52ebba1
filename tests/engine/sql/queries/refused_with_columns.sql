WITH v (a) AS (SELECT id FROM flights) SELECT a FROM v
-- refused 1:8: the columns of a query have the names of its items: write SELECT ... AS name
