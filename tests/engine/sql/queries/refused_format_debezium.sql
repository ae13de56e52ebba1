CREATE TABLE k (a INT) WITH (connector = 'stdin', format = 'debezium_json'); SELECT a FROM k
-- refused 1:51: format = 'debezium_json': updating SQL is not supported. Write json, with the columns before, after and op
