CREATE TABLE t WITH (connector = 'stdout', format = 'debezium_json');
INSERT INTO t SELECT id FROM flights
-- refused 1:44: format = 'debezium_json': updating SQL is not supported. Write json, with the columns before, after and op
