SET state_ttl = '1 day';
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY small ORDER BY day) AS n FROM timed) WHERE n = 2
-- refused 2:28: OVER (...) is for results of windows: select from a query with GROUP BY tumble(...)
