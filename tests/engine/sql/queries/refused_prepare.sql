PREPARE p AS SELECT id FROM flights
-- refused 1:1: there is no PREPARE: write the query itself
