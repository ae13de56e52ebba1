SELECT tumble(INTERVAL '1 minute') FROM flights
-- refused 1:8: tumble: windows are not supported yet, as aggregates are not: rows pass one by one
