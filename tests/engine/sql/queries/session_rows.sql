SELECT session(interval '20 hours') AS w, array_agg(id ORDER BY id) AS ids, median(speed) AS m FROM timed WHERE twice(small) <> 2 AND (id < 6 OR id > 9) GROUP BY w
-- reference WITH a AS (SELECT id, speed, day, lag(day) OVER (ORDER BY day) AS b FROM timed WHERE small <> 1 AND (id < 6 OR id > 9)),
-- reference c AS (SELECT *, sum(CASE WHEN day - b < interval '20 hours' THEN 0 ELSE 1 END) OVER (ORDER BY day) AS s FROM a)
-- reference SELECT named_struct('start', min(day), 'end', max(day) + interval '20 hours') AS w, array_agg(id ORDER BY id) AS ids, median(speed) AS m FROM c GROUP BY s
-- result rows (w, ids, m)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 07:00:00"}, [0, 2, 3, 5], 31.25]
-- [{"start": "2013-01-04 05:00:00", "end": "2013-01-08 13:00:00"}, [11, 12, 14, 15, 17, 18, 20, 21, 23], 212.5]
