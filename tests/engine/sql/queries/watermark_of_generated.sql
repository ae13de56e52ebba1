CREATE TABLE made (id BIGINT, day TIMESTAMP(3), lag BIGINT GENERATED ALWAYS AS (id % 3),
                   WATERMARK FOR day AS CASE lag WHEN 0 THEN day ELSE least(day, day - INTERVAL '3 minutes') END)
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT count(*) AS n, tumble(interval '1 day') AS window FROM made GROUP BY window
-- reference SELECT count(*) AS n, tumble(interval '1 day') AS window FROM flights GROUP BY window
-- result rows (n, window)
-- [3, {"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}]
-- [3, {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}]
-- [3, {"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}]
-- [3, {"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}]
-- [4, {"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}]
-- [4, {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}]
-- [4, {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}]
