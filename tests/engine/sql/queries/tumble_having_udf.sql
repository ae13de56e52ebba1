SELECT small, tumble(interval '1 day') AS window FROM timed GROUP BY small, window HAVING is_big(sum(alt)) AND twice(small) < 3
-- result rows (small, window)
-- [0, {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}]
-- [1, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}]
