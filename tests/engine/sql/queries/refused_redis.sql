CREATE TABLE k (a INT) WITH (connector = 'redis', address = 'redis://a.invalid', format = 'json'); SELECT a FROM k
-- refused 1:30: the connector redis is not supported: write connector = 'postgres' or 'sqlite'
