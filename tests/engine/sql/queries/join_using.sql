CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT window, k, a.n, b.n AS other FROM small_ones a FULL JOIN good_ones b USING (window, k)
-- reference CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
-- reference CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
-- reference SELECT coalesce(a.window, b.window) AS window, coalesce(a.k, b.k) AS k, a.n, b.n AS other FROM small_ones a FULL JOIN good_ones b USING (window, k)
-- result rows (window, k, n, other)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 0, 2, null]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 2, 2]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 2, 1]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 3, null, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 0, 2, null]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 2, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 2, 1, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 3, null, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 0, 1, null]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 1, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 2, 3, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 3, null, 2]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 0, 1, null]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 1, 1, null]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 2, null, 1]
