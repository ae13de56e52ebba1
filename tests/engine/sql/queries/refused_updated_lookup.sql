CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT v.n, planes.maker FROM v JOIN planes ON v.small = planes.small
-- refused 2:31: these results are updated, and have no rows of lookups or functions beside them: group by a window, such as tumble(interval '1 minute'), or select from the rows themselves
