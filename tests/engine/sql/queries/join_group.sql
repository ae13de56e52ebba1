CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.window, count(*) AS n, sum(a.n * b.n) AS m FROM small_ones a JOIN good_ones b ON a.window = b.window GROUP BY a.window HAVING count(*) > 2
-- result rows (window, n, m)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 9, 24]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 9, 15]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 9, 20]
