CREATE VIEW v AS SELECT id FROM flights;
INSERT INTO v SELECT id FROM flights
-- refused 2:13: v is a view: insert into a table
