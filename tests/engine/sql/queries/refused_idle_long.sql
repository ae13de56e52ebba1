CREATE TABLE late (day TIMESTAMP, WATERMARK FOR day) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', idle_micros = 99999999999999999999999999);
SELECT day FROM late
-- refused 1:141: idle_micros = '99999999999999999999999999': write no more than 1000000000 seconds
