SELECT w.start AS s, n FROM (SELECT tumble(interval '1 day') AS w, count(*) AS n FROM timed GROUP BY 1) AS days WHERE n > 3
-- result rows (s, n)
-- ["2013-01-01 00:00:00", 4]
-- ["2013-01-03 00:00:00", 4]
-- ["2013-01-05 00:00:00", 4]
