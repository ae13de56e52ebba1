SET state_ttl = '1000 days';
SELECT upper(tail) AS t, small, day FROM timed WHERE alt > 10 QUALIFY row_number() OVER (PARTITION BY small, ok ORDER BY day ASC) = 1;
-- result rows (t, small, day)
-- ["B02", 2, "2013-01-01 14:00:00"]
-- ["B11", 2, "2013-01-04 05:00:00"]
-- ["D01", 1, "2013-01-01 07:00:00"]
-- ["D16", 1, "2013-01-05 16:00:00"]
-- ["N06", 0, "2013-01-02 18:00:00"]
-- [null, 0, "2013-01-01 21:00:00"]
