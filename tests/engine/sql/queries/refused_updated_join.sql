CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT v.n, flights.id FROM flights LEFT JOIN v ON flights.small = v.small AND v.n > 3
-- refused 2:80: a LEFT JOIN of rows that may change has = alone: write this condition in a query for the table, as in JOIN (SELECT ... WHERE ...)
