INSERT INTO out SELECT id FROM flights ON CONFLICT DO NOTHING
-- refused 1:40: write the end of the query here, not ON
