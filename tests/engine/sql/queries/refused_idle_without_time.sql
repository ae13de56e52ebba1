CREATE TABLE calm (id BIGINT, day TIMESTAMP(6))
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', idle_micros = '5000000');
SELECT id FROM calm
-- refused 2:88: idle_micros is of tables with an event time: add WATERMARK FOR its column
