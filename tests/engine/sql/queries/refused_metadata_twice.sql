CREATE TABLE t (tail TEXT METADATA FROM 'filename') WITH (connector = 'filesystem', path = 'flights', type = 'source');
SELECT tail FROM t
-- refused 1:14: table t: metadata: there is a column 'tail' already: choose another name
