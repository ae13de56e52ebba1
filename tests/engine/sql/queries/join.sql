CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.window, a.k, a.n, b.n AS good FROM small_ones a JOIN good_ones b ON a.window = b.window AND a.k = b.k
-- result rows (window, k, n, good)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 2, 2]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 2, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 2, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 2, 1, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 1, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 2, 3, 1]
