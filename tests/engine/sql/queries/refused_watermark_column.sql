CREATE TABLE a (id BIGINT, day TIMESTAMP(3), WATERMARK FOR day AS least(day, dya)) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM a
-- refused 1:78: there is no column dya: write 'day'
