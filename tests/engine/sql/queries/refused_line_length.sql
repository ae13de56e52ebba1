CREATE TABLE k (value TEXT) WITH (connector = 'stdin', format = 'raw_string', framing = 'newline',
                                 'framing.newline.max_length' = '100');
SELECT * FROM k
-- refused 2:34: framing.newline.max_length: lines are not cut here: write left(value, 100) in a SELECT
