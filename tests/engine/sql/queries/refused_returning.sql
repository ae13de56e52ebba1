INSERT INTO out SELECT id FROM flights RETURNING id
-- refused 1:40: write the end of the query here, not RETURNING
