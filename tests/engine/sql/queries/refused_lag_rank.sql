SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, rank() OVER (PARTITION BY small ORDER BY window) AS x FROM days
-- refused 3:15: rank counts all rows of a key: write OVER (PARTITION BY window ...), or a sum with ROWS BETWEEN 2 PRECEDING AND CURRENT ROW
