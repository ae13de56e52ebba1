SELECT DISTINCT small FROM flights
-- refused 1:1: DISTINCT is not supported: it would have to remember all rows for ever. Write SET state_ttl = '1 day', and QUALIFY row_number() OVER (PARTITION BY key ORDER BY at) = 1
