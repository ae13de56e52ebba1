CREATE TABLE k (a INT DEFAULT 3) WITH (connector = 'blackhole'); INSERT INTO k SELECT id FROM flights
-- refused 1:23: write NOT NULL, PRIMARY KEY, GENERATED ALWAYS AS (...), METADATA FROM 'key', or a comma here, not DEFAULT
