CREATE VIEW v AS SELECT id FROM flights;
CREATE VIEW v AS SELECT id FROM flights; SELECT id FROM v
-- refused 2:13: there is a table or view v already: rename one
