CREATE TABLE t (a INT, k TEXT METADATA FROM 'key') WITH (connector = 'filesystem', path = 'flights', type = 'source');
SELECT a FROM t
-- refused 1:24: METADATA FROM: none of the connectors here has metadata. Leave the column out
