CREATE VIEW v AS SELECT id AS "Id" FROM flights;
SELECT Id FROM v
-- refused 2:8: there is no column id: write "Id", with these quotes
