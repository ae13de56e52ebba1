SELECT id, tail FROM flights
UNION ALL SELECT id FROM flights
-- refused 2:11: this SELECT has 1 columns, and the first one 2: id, tail
