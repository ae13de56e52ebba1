SHOW TABLES
-- refused 1:1: there is no SHOW: write EXPLAIN before a query; it shows columns and types
