INSERT INTO out SELECT ok, avg(half(speed)) AS speed FROM flights GROUP BY ok
-- result out (ok, speed)
-- [false, 68.75]
-- [null, 87.5]
-- [true, 68.75]
