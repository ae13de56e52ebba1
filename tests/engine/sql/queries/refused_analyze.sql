ANALYZE TABLE flights
-- refused 1:1: there is no ANALYZE: write EXPLAIN before the query
