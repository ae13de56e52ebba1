CREATE TABLE a (id BIGINT, n BIGINT GENERATED ALWAYS AS (1 + twice(id))) WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM a
-- refused 1:62: CREATE TABLE cannot call twice, a function of a plugin: call it in a view
