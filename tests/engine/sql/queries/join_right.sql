CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT coalesce(a.n, 0) - b.n AS d, b.* FROM small_ones a RIGHT OUTER JOIN good_ones b ON a.window = b.window AND a.k = b.k
-- result rows (d, window, k, n)
-- [-1, {"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 3, 1]
-- [-1, {"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 3, 1]
-- [-1, {"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 2, 1]
-- [-2, {"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 3, 2]
-- [0, {"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 2]
-- [0, {"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 2, 1]
-- [0, {"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 1]
-- [1, {"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 1]
-- [1, {"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 1]
-- [2, {"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 2, 1]
