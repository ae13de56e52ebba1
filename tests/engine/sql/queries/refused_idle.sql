CREATE TABLE calm (id BIGINT, day TIMESTAMP(6), WATERMARK FOR day)
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', idle_micros = '5 s');
SELECT id FROM calm
-- refused 2:88: idle_micros = '5 s': write a whole number of microseconds above 0
