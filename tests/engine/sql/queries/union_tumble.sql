CREATE VIEW every AS SELECT id, alt, day FROM timed UNION ALL SELECT id + 100, alt * 2, day FROM timed WHERE ok;
SELECT tumble(interval '2 days') AS window, count(*) AS n, max(alt) AS m FROM every GROUP BY window
-- result rows (window, n, m)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 11, 128]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 10, 148]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 11, 84]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 4, 47]
