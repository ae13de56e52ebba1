CREATE TABLE k (a INT) WITH (connector = 'kinesis', stream_name = 'a', aws_region = 'b', type = 'source',
                             format = 'json');
SELECT a FROM k
-- refused 1:30: the connector kinesis is not supported: pipe its records into a table with connector = 'stdin', or from one with 'stdout'
