CREATE VIEW v AS SELECT small, count(*) AS n, max(day) AS d FROM timed GROUP BY small;
SELECT n, tumble(interval '1 day') AS window, count(*) FROM v GROUP BY n, window
-- refused 2:61: these results are updated, and are not grouped by windows or numbered: group by a window, such as tumble(interval '1 minute'), or select from the rows themselves
