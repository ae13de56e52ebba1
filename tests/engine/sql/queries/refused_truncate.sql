TRUNCATE TABLE out; INSERT INTO out SELECT id FROM flights
-- refused 1:1: there is no TRUNCATE: tables are only there while the file runs. Leave it out
