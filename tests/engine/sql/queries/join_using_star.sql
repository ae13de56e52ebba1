CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT * FROM (SELECT window, k, n AS m FROM small_ones) a RIGHT JOIN good_ones b USING (window, k)
-- reference CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
-- reference CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
-- reference SELECT b.window, b.k, a.n AS m, b.n FROM small_ones a RIGHT JOIN good_ones b USING (window, k)
-- result rows (window, k, m, n)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 2, 2]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 2, 1]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 3, null, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 2, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 2, 1, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 3, null, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 1, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 2, 3, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 3, null, 2]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 2, null, 1]
