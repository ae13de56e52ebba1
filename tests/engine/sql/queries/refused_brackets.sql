SELECT (id FROM flights
-- refused 1:8: this ( has no )
