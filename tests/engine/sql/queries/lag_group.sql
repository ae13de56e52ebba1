SET state_ttl = '1000 days';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
CREATE VIEW changes AS SELECT window, n - lag(n) OVER (PARTITION BY small ORDER BY window) AS more FROM days;
SELECT window, sum(more) AS s FROM changes GROUP BY window;
-- reference SET state_ttl = '1000 days';
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
-- reference CREATE VIEW changes AS SELECT window, n - lag(n) OVER (PARTITION BY small ORDER BY window.start) AS more FROM days;
-- reference SELECT window, sum(more) AS s FROM changes GROUP BY window;
-- result rows (window, s)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, null]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, -1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 1]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, -1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 1]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, -1]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 0]
