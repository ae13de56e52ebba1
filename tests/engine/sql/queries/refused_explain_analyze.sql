EXPLAIN ANALYZE SELECT id FROM flights
-- refused 1:9: there is no EXPLAIN ANALYZE: write EXPLAIN alone
