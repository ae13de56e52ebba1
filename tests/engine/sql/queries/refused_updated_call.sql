CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT twice(n) AS t FROM v
-- refused 2:8: the results of this GROUP BY without a window are updated with each row, and a function of a plugin is not called for these: call it for the rows, in a view before the GROUP BY, or in another pipeline for the changes
