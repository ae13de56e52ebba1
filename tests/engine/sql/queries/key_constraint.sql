CREATE TABLE t (a BIGINT, CONSTRAINT pk PRIMARY KEY (a)) WITH (connector = 'blackhole');
INSERT INTO t SELECT id FROM flights WHERE id < 4
-- result t (a)
-- [0]
-- [1]
-- [2]
-- [3]
