SET state_ttl = '1 day';
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY small ORDER BY day DESC) AS n FROM timed) WHERE n = 1
-- refused 2:28: which row is the first one is known by the event time alone: write row_number() OVER (PARTITION BY key ORDER BY at) = 1, with the event time
