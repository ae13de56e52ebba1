CREATE TABLE made (id BIGINT, ms BIGINT GENERATED ALWAYS AS (1356998400000 + id * 25200000),
                   at TIMESTAMP(3) GENERATED ALWAYS AS (to_timestamp_millis(1356998400000 + id * 25200000)),
                   WATERMARK FOR at AS at - INTERVAL '1 hour')
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT tumble(interval '1 day') AS window, count(*) AS n, min(ms) AS ms, max(at) AS at FROM made GROUP BY window
-- reference SELECT tumble(interval '1 day') AS window, count(*) AS n,
-- reference min(1356998400000 + id * 25200000) AS ms, max(day::timestamp(3)) AS at FROM flights GROUP BY window
-- result rows (window, n, ms, at)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 4, 1356998400000, "2013-01-01 21:00:00"]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 3, 1357099200000, "2013-01-02 18:00:00"]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 4, 1357174800000, "2013-01-03 22:00:00"]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 3, 1357275600000, "2013-01-04 19:00:00"]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 4, 1357351200000, "2013-01-05 23:00:00"]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 3, 1357452000000, "2013-01-06 20:00:00"]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 3, 1357527600000, "2013-01-07 17:00:00"]
