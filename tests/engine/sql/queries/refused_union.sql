SELECT id FROM flights UNION ALL SELECT id FROM flights
-- refused 1:24: UNION is not supported: insert twice, into two tables
