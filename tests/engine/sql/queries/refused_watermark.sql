CREATE TABLE a (id BIGINT, day TIMESTAMP(3), WATERMARK FOR day AS id + 1) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
CREATE TABLE b (id BIGINT, day TIMESTAMP(3), WATERMARK FOR days) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM a;
SELECT id FROM b;
-- refused 1:67: a watermark is a TIMESTAMP, and this is int64: write day - INTERVAL '5 seconds'
-- 2:60: there is no column days for the event time: write 'day'
