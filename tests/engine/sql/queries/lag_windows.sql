SET state_ttl = '1000 days';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, window.start AS day, n, lag(n) OVER (PARTITION BY small ORDER BY window) AS before, n - lag(n, 2, 0) OVER (PARTITION BY small ORDER BY window) AS more,
       avg(s) OVER (PARTITION BY small ORDER BY window ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving
FROM days;
-- reference SET state_ttl = '1000 days';
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
-- reference SELECT small, window.start AS day, n, lag(n) OVER (PARTITION BY small ORDER BY window.start) AS before, n - lag(n, 2, 0) OVER (PARTITION BY small ORDER BY window.start) AS more,
-- reference        avg(s) OVER (PARTITION BY small ORDER BY window.start ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving
-- reference FROM days;
-- result rows (small, day, n, before, more, moving)
-- [0, "2013-01-01 00:00:00", 2, null, 2, 1.0]
-- [0, "2013-01-02 00:00:00", 1, 2, 1, 16.5]
-- [0, "2013-01-03 00:00:00", 1, 1, -1, 16.5]
-- [0, "2013-01-04 00:00:00", 1, 1, 0, 53.0]
-- [0, "2013-01-05 00:00:00", 1, 1, 0, 39.5]
-- [0, "2013-01-06 00:00:00", 1, 1, 0, 35.0]
-- [0, "2013-01-07 00:00:00", 1, 1, 0, 26.0]
-- [1, "2013-01-01 00:00:00", 1, null, 1, 27.0]
-- [1, "2013-01-02 00:00:00", 1, 1, 1, 27.0]
-- [1, "2013-01-03 00:00:00", 2, 1, 1, 48.0]
-- [1, "2013-01-04 00:00:00", 1, 2, 0, 45.0]
-- [1, "2013-01-05 00:00:00", 1, 1, -1, 44.0]
-- [1, "2013-01-06 00:00:00", 1, 1, 0, 31.5]
-- [1, "2013-01-07 00:00:00", 1, 1, 0, 18.0]
-- [2, "2013-01-01 00:00:00", 1, null, 1, 64.0]
-- [2, "2013-01-02 00:00:00", 1, 1, 1, 29.5]
-- [2, "2013-01-03 00:00:00", 1, 1, 0, 25.0]
-- [2, "2013-01-04 00:00:00", 1, 1, 0, 16.0]
-- [2, "2013-01-05 00:00:00", 2, 1, 1, 44.0]
-- [2, "2013-01-06 00:00:00", 1, 2, 0, 42.0]
-- [2, "2013-01-07 00:00:00", 1, 1, -1, 40.0]
