SET state_ttl = '1 day';
SELECT id FROM timed QUALIFY row_number() OVER (PARTITION BY smal ORDER BY day) = 1
-- refused 2:62: there is no column smal: write 'small'
