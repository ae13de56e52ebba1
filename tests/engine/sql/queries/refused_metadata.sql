CREATE TABLE t (a INT, k TEXT METADATA FROM 'key') WITH (connector = 'filesystem', path = 'flights', type = 'source');
CREATE TABLE i (counter BIGINT, k TEXT METADATA FROM 'offset_id') WITH (connector = 'impulse', event_rate = '10');
CREATE TABLE u (id BIGINT, n TEXT METADATA FROM 'row') WITH (connector = 'filesystem', path = 'flights', type = 'source');
CREATE TABLE o (id BIGINT, f TEXT METADATA FROM 'filename') WITH (connector = 'blackhole');
CREATE TABLE m (id BIGINT, f TEXT METADATA FROM 'filename');
INSERT INTO m SELECT id, tail FROM flights;
SELECT id FROM m;
SELECT a FROM t;
SELECT counter FROM i;
SELECT id FROM u;
INSERT INTO o SELECT id, tail FROM flights
-- refused 1:45: the connector filesystem has no metadata 'key': there are filename, row
-- 2:54: the connector impulse has no metadata 'offset_id': it has none. Leave the column out
-- 3:28: n is int64 where it is read, not string: write that type
-- 4:49: f is metadata of a source, and o is inserted into: leave out METADATA FROM
-- 5:49: f is metadata of a source, and m is inserted into: leave out METADATA FROM
