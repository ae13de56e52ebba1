CREATE TABLE k (a INT) WITH (connector = 'redis', address = 'redis://a.invalid', format = 'json'); SELECT a FROM k
-- refused 1:14: table k has no stream: write stream = 'k'
