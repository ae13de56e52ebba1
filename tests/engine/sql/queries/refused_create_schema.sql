CREATE SCHEMA s; SELECT id FROM flights
-- refused 1:8: there is no CREATE SCHEMA: tables have no schemas here. Leave it out
