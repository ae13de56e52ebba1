SELECT id FROM flights TABLESAMPLE (10 PERCENT)
-- refused 1:24: TABLESAMPLE is not supported: write WHERE random() < 0.1
