INSERT INTO out
SELECT tumble(interval '1 day') AS w, total(alt) AS t, median(speed) AS m, total(DISTINCT small) AS d,
       weighted(speed, small) FILTER (WHERE alt IS NOT NULL AND small > 0) AS x
FROM timed GROUP BY w;
-- reference INSERT INTO out SELECT tumble(interval '1 day') AS w, sum(alt) AS t, median(speed) AS m, sum(DISTINCT small) AS d, sum(speed * small) FILTER (WHERE alt IS NOT NULL AND small > 0) / sum(small) FILTER (WHERE alt IS NOT NULL AND small > 0) AS x FROM timed GROUP BY 1;
-- result out (w, t, m, d, x)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 92, 18.75, 3, 20.833333333333332]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 27, 62.5, 3, 62.5]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 85, 106.25, 3, 103.125]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 132, 150.0, 3, 145.83333333333334]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 126, 193.75, 3, 208.33333333333334]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 36, 237.5, 3, 250.0]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 72, 275.0, 3, 283.3333333333333]
