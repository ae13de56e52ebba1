CREATE TABLE t (id BIGINT, k TEXT GENERATED ALWAYS AS ('a') METADATA FROM 'filename')
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id FROM t
-- refused 1:75: k is generated, and from metadata: leave out one of them
