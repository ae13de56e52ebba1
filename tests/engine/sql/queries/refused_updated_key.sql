CREATE TABLE t (small INT, n BIGINT PRIMARY KEY) WITH (connector = 'sqlite', uri = 'sqlite:t.db');
INSERT INTO t SELECT small, count(*) AS n FROM flights GROUP BY small
-- refused 2:65: these results are updated, and t finds a result by its key, which must be all that GROUP BY has: write PRIMARY KEY (small), with the types that they have
