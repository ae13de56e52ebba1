SELECT id INTO copy FROM flights
-- refused 1:11: SELECT ... INTO is not supported: write INSERT INTO before the SELECT
