USE s; SELECT id FROM flights
-- refused 1:1: there is no USE: tables have no schemas here. Leave it out
