CREATE TABLE t WITH (connector = 'filesystem', format = 'csv', type = 'source');
SELECT a FROM t
-- refused 1:14: table t has no path: write path = 'data/*.parquet'
