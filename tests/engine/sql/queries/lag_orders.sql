SET state_ttl = '1000 days';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT d.*, lag(s) OVER (ORDER BY d.window.end, d.small DESC) AS before, first_value(s) OVER (PARTITION BY small % 2 ORDER BY window, small ROWS 3 PRECEDING) AS first,
       count(*) OVER (PARTITION BY window) AS all_of_them
FROM days d WHERE n > 0;
-- reference SET state_ttl = '1000 days';
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
-- reference SELECT d.*, lag(s) OVER (ORDER BY d.window.end, d.small DESC) AS before, first_value(s) OVER (PARTITION BY small % 2 ORDER BY window.start, small ROWS 3 PRECEDING) AS first,
-- reference        count(*) OVER (PARTITION BY window) AS all_of_them
-- reference FROM days d WHERE n > 0;
-- result rows (small, window, n, s, before, first, all_of_them)
-- [0, {"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 2, 1, 27, 1, 3]
-- [0, {"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 32, null, 1, 3]
-- [0, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 1, null, 69, 64, 3]
-- [0, {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 74, 21, -5, 3]
-- [0, {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 1, 5, 42, 16, 3]
-- [0, {"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 26, null, 37, 3]
-- [0, {"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 1, 47, -6, 79, 3]
-- [1, {"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 1, 27, 64, 27, 3]
-- [1, {"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 1, null, -5, 27, 3]
-- [1, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 2, 69, 16, 27, 3]
-- [1, {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 21, 37, 27, 3]
-- [1, {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 1, 42, 79, null, 3]
-- [1, {"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 1, null, 10, 69, 3]
-- [1, {"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 1, -6, 31, 21, 3]
-- [2, {"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 1, 64, null, 1, 3]
-- [2, {"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 1, -5, 1, 1, 3]
-- [2, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 1, 16, 32, 32, 3]
-- [2, {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 37, null, null, 3]
-- [2, {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 2, 79, 74, 74, 3]
-- [2, {"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 10, 5, 5, 3]
-- [2, {"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 1, 31, 26, 26, 3]
