CREATE TABLE a (id BIGINT, day TIMESTAMP(3), WATERMARK FOR day AS to_timestamp(twice(id))) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM a
-- refused 1:80: CREATE TABLE cannot call twice, a function of a plugin: call it in a view
