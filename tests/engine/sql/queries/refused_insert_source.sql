CREATE TABLE t WITH (connector = 'filesystem', path = 'x', type = 'source');
INSERT INTO t SELECT id FROM flights
-- refused 2:13: t is a source: insert into a table with type = 'sink'
