CREATE TABLE late (day TIMESTAMP, WATERMARK FOR day AS day - INTERVAL '99999999 days') WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT day FROM late
-- refused 1:62: a watermark is no more than 1000000000 seconds late: write a shorter interval
