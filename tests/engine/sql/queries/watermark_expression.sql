CREATE TABLE late (id BIGINT, day TIMESTAMP(6), small INT,
                   WATERMARK FOR day AS CASE WHEN small < 2 THEN date_trunc('hour', day) - INTERVAL '1 hour' END)
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT tumble(interval '1 day') AS window, count(*) AS n, sum(id) AS s FROM late GROUP BY window
-- reference SELECT tumble(interval '1 day') AS window, count(*) AS n, sum(id) AS s FROM flights GROUP BY window
-- result rows (window, n, s)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 4, 6]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 3, 15]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 4, 34]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 3, 36]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 4, 62]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 3, 57]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 3, 66]
