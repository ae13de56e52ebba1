SELECT id FROM flights TABLESAMPLE (10 PERCENT)
-- refused 1:36: ( is not expected here: write WHERE, or the end of the query
