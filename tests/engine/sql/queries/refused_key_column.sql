CREATE TABLE k (a INT, PRIMARY KEY (b)) WITH (connector = 'blackhole'); INSERT INTO k SELECT id FROM flights
-- refused 1:37: there is no column b for the key: there are a
