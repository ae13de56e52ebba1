CREATE TABLE t (a INT, b BIGINT) WITH (connector = 'blackhole');
INSERT INTO t SELECT id, tail FROM flights
-- refused 2:26: b is int64 in the table, and this is string: write CAST(... AS ...)
