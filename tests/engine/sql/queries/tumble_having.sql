SELECT small, tumble(interval '1 day') AS window, count(*) AS n FROM timed GROUP BY small, window HAVING count(*) > 1 AND max(alt) > 20
-- result rows (small, window, n)
-- [1, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 2]
-- [2, {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 2]
