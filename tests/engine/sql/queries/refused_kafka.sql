CREATE TABLE k (a INT) WITH (connector = 'kafka', bootstrap_servers = 'localhost:9092', topic = 'a', type = 'source',
                             format = 'json');
SELECT a FROM k
-- refused 1:30: the connector kafka is not supported: pipe its records into a table with connector = 'stdin', or from one with 'stdout'
