CREATE VIEW v AS SELECT id FROM v; SELECT id FROM v
-- refused 1:33: v selects from v: name another table
