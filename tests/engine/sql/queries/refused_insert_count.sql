INSERT INTO out (a, b) SELECT id FROM flights
-- refused 1:24: the SELECT has 1 columns, and the table 2: a, b
