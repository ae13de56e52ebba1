SET state_ttl = '1 day';
SELECT id FROM timed QUALIFY row_number() OVER (ORDER BY day) = 1
-- refused 2:30: the first row of all is no key's: write row_number() OVER (PARTITION BY key ORDER BY at) = 1, with the event time
