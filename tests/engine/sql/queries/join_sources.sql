CREATE TABLE again (id BIGINT, alt BIGINT, day TIMESTAMP(6), WATERMARK FOR day AS day - INTERVAL '1 day') WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT a.window, a.n, b.n AS other FROM (SELECT tumble(interval '1 day') AS window, count(*) AS n FROM timed WHERE id < 15 GROUP BY window) a
FULL JOIN (SELECT tumble(interval '1 day') AS window, count(*) AS n FROM again WHERE id > 9 GROUP BY window) b ON a.window = b.window
-- reference SELECT a.window, a.n, b.n AS other FROM (SELECT tumble(interval '1 day') AS window, count(*) AS n FROM timed WHERE id < 15 GROUP BY 1) a
-- reference FULL JOIN (SELECT tumble(interval '1 day') AS window, count(*) AS n FROM timed WHERE id > 9 GROUP BY 1) b ON a.window = b.window
-- result rows (window, n, other)
-- [null, null, 3]
-- [null, null, 3]
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 4, null]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 3, null]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 4, 1]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 3, 3]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 1, 4]
