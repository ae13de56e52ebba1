CREATE TABLE k (a INT) WITH (connector = 'websocket', endpoint = 'https://a.invalid', format = 'json'); SELECT a FROM k
-- refused 1:30: the connector websocket is not supported: pipe its records into a table with connector = 'stdin', or from one with 'stdout'
