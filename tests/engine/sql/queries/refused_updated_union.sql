CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT n FROM v UNION ALL SELECT id FROM flights
-- refused 2:1: these results are updated, and are not put together by UNION ALL: group by a window, such as tumble(interval '1 minute'), or select from the rows themselves
