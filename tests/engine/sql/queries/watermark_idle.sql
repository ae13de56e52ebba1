CREATE TABLE calm (id BIGINT, day TIMESTAMP(6), WATERMARK FOR day AS day - INTERVAL '1 day')
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', idle_micros = '600000000');
SELECT tumble(interval '2 days') AS window, count(*) AS n FROM calm GROUP BY window
-- reference SELECT tumble(interval '2 days') AS window, count(*) AS n FROM timed GROUP BY 1
-- result rows (window, n)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 7]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 7]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 7]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 3]
