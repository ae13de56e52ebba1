CREATE TEMPORARY TABLE t (a INT) WITH (connector = 'redis'); SELECT id FROM flights
-- refused 1:24: CREATE TEMPORARY TABLE (a lookup table) is not supported yet
