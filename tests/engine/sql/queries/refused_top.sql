SELECT TOP 5 id FROM flights
-- refused 1:8: write the end of the query here, not TOP
