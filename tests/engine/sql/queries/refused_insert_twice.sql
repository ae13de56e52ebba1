INSERT INTO out SELECT id FROM flights;
INSERT INTO out SELECT alt FROM flights
-- refused 2:13: out is inserted into already: name another table
