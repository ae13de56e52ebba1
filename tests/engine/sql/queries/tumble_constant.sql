SELECT 'x' AS x FROM timed GROUP BY tumble(interval '1 day')
-- result rows (x)
-- ["x"]
-- ["x"]
-- ["x"]
-- ["x"]
-- ["x"]
-- ["x"]
-- ["x"]
