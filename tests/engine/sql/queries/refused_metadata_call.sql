CREATE TABLE calm (id BIGINT, name TEXT metadata('filename'))
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM calm
-- refused 1:41: write METADATA FROM 'key', without brackets
