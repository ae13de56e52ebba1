SELECT id # 3 FROM flights
-- refused 1:11: there is no such operator: write one of DataFusion's
