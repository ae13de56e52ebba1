EXPLAIN VERBOSE SELECT id FROM flights
-- refused 1:9: there is no EXPLAIN VERBOSE: write EXPLAIN alone
