SELECT DISTINCT small FROM flights
-- refused 1:1: DISTINCT is not supported: it would have to remember all rows for ever
