CREATE TABLE k WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', 'source.regex_pattern' = '.*parquet');
SELECT * FROM k
-- refused 1:103: source.regex_pattern: write a pattern as the path, such as 'data/*.json'
