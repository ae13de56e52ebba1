DESCRIBE flights
-- refused 1:1: there is no DESCRIBE: write EXPLAIN before the query; it shows columns and types
