SET state_ttl = '1 day';
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY small ORDER BY day) AS n FROM timed) WHERE n = 2
-- refused 2:28: row_number counts all rows of a key: write OVER (PARTITION BY window ...), or a sum with ROWS BETWEEN 2 PRECEDING AND CURRENT ROW
