CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT n, row_number() OVER (PARTITION BY n ORDER BY s) AS place FROM v
-- refused 2:71: these results are updated, and are not grouped by windows or numbered: group by a window, such as tumble(interval '1 minute'), or select from the rows themselves
