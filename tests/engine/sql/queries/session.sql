SELECT tail, session(interval '60 hours') AS window, count(*) AS n, sum(alt) AS s FROM (SELECT substr(tail, 1, 1) AS tail, alt FROM timed) GROUP BY 1, 2
-- reference WITH a AS (SELECT substr(tail, 1, 1) AS tail, alt, day, lag(day) OVER (PARTITION BY substr(tail, 1, 1) ORDER BY day) AS b FROM timed),
-- reference c AS (SELECT *, sum(CASE WHEN day - b < interval '60 hours' THEN 0 ELSE 1 END) OVER (PARTITION BY tail ORDER BY day) AS s FROM a)
-- reference SELECT tail, named_struct('start', min(day), 'end', max(day) + interval '60 hours') AS window, count(*) AS n, sum(alt) AS s FROM c GROUP BY tail, s
-- result rows (tail, window, n, s)
-- ["B", {"start": "2013-01-01 14:00:00", "end": "2013-01-10 05:00:00"}, 7, 153]
-- ["D", {"start": "2013-01-01 07:00:00", "end": "2013-01-09 22:00:00"}, 7, 153]
-- ["N", {"start": "2013-01-01 00:00:00", "end": "2013-01-09 15:00:00"}, 7, 174]
-- [null, {"start": "2013-01-01 21:00:00", "end": "2013-01-08 11:00:00"}, 3, 90]
