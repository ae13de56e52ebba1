SET state_ttl = '1000 days';
SELECT id, small, n FROM (SELECT *, row_number() OVER (PARTITION BY small ORDER BY day) AS n FROM timed) WHERE n = 1;
-- result rows (id, small, n)
-- [0, 0, 1]
-- [1, 1, 1]
-- [2, 2, 1]
