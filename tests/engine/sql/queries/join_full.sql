CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.window AS aw, b.window AS bw, a.k AS ak, b.k AS bk FROM small_ones a FULL JOIN good_ones b ON a.window = b.window AND a.k = b.k WHERE coalesce(a.k, b.k) < 3
-- result rows (aw, bw, ak, bk)
-- [null, {"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, null, 2]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, null, 0, null]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, {"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 1, 1]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, {"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 2]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, null, 0, null]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, {"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 1, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, {"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 2, 2]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, null, 0, null]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, {"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 1, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, {"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 2, 2]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, null, 0, null]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, null, 1, null]
