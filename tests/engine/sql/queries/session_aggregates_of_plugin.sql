INSERT INTO out
SELECT small, session(interval '30 hours') AS w, total(alt) AS t, weighted(speed, id) AS x, nulls(tail) AS n
FROM timed WHERE ok GROUP BY small, w;
-- reference INSERT INTO out WITH a AS (SELECT *, lag(day) OVER (PARTITION BY small ORDER BY day) AS b FROM timed WHERE ok), c AS (SELECT *, sum(CASE WHEN day - b < interval '30 hours' THEN 0 ELSE 1 END) OVER (PARTITION BY small ORDER BY day) AS s FROM a) SELECT small, named_struct('start', min(day), 'end', max(day) + interval '30 hours') AS w, sum(alt) AS t, sum(speed * id) / nullif(sum(id), 0) AS x, count(*) - count(tail) AS n FROM c GROUP BY small, s;
-- result out (small, w, t, x, n)
-- [0, {"start": "2013-01-01 00:00:00", "end": "2013-01-02 06:00:00"}, -10, null, 0]
-- [0, {"start": "2013-01-02 18:00:00", "end": "2013-01-04 00:00:00"}, 32, 75.0, 0]
-- [0, {"start": "2013-01-04 12:00:00", "end": "2013-01-05 18:00:00"}, 74, 150.0, 0]
-- [0, {"start": "2013-01-06 06:00:00", "end": "2013-01-07 12:00:00"}, 26, 225.0, 0]
-- [1, {"start": "2013-01-02 04:00:00", "end": "2013-01-03 10:00:00"}, null, 50.0, 0]
-- [1, {"start": "2013-01-03 22:00:00", "end": "2013-01-05 04:00:00"}, 0, 125.0, 1]
-- [1, {"start": "2013-01-05 16:00:00", "end": "2013-01-06 22:00:00"}, 42, 200.0, 0]
-- [1, {"start": "2013-01-07 10:00:00", "end": "2013-01-08 16:00:00"}, -6, 275.0, 0]
-- [2, {"start": "2013-01-01 14:00:00", "end": "2013-01-02 20:00:00"}, 64, 25.0, 0]
-- [2, {"start": "2013-01-03 08:00:00", "end": "2013-01-04 14:00:00"}, 16, 100.0, 0]
-- [2, {"start": "2013-01-05 02:00:00", "end": "2013-01-06 08:00:00"}, null, 175.0, 0]
-- [2, {"start": "2013-01-06 20:00:00", "end": "2013-01-08 02:00:00"}, 10, 250.0, 0]
