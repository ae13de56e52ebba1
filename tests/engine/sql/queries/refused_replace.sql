REPLACE INTO out SELECT id FROM flights
-- refused 1:1: there is no REPLACE: insert into a table with a PRIMARY KEY, which replaces rows
