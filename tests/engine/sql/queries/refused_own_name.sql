CREATE VIEW v AS SELECT id AS __r1 FROM flights;
SELECT twice(__r1) FROM v
-- refused 2:25: a column has the name __r1, which calls need: rename it
