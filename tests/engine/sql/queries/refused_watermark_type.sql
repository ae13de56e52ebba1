CREATE TABLE a (n BIGINT GENERATED ALWAYS AS (id + 1), id BIGINT, WATERMARK FOR n) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM a
-- refused 1:81: the event time is a TIMESTAMP, and n is int64: write another column
