CREATE TABLE k (a INT) WITH (connector = 'stdin', format = 'debezium_json'); SELECT a FROM k
-- refused 1:14: k has changes: name the PRIMARY KEY of the table that changes, or, for a row of each change, the columns op, before and after
