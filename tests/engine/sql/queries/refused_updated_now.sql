CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT n, now() AS t FROM v
-- refused 2:1: the results of this GROUP BY without a window are updated with each row, and now is another one each time: write it in a view before it
