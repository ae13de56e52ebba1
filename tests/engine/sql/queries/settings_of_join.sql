SET memory_limit = 50;
CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.window.start AS day, a.k, a.top, b.n AS other FROM small_ones a FULL JOIN good_ones AS b ON b.k = a.k AND b.window = a.window AND a.n + b.n > 3
-- result rows (day, k, top, other)
-- ["2013-01-01 00:00:00", 0, 32, null]
-- ["2013-01-01 00:00:00", 1, 27, 2]
-- ["2013-01-01 00:00:00", 2, 64, null]
-- ["2013-01-03 00:00:00", 0, 74, null]
-- ["2013-01-03 00:00:00", 1, 21, null]
-- ["2013-01-03 00:00:00", 2, 16, null]
-- ["2013-01-05 00:00:00", 0, 26, null]
-- ["2013-01-05 00:00:00", 1, 42, null]
-- ["2013-01-05 00:00:00", 2, 79, 1]
-- ["2013-01-07 00:00:00", 0, 47, null]
-- ["2013-01-07 00:00:00", 1, -6, null]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 1]
-- [null, null, null, 2]
