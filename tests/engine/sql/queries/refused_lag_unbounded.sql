SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, sum(n) OVER (PARTITION BY small ORDER BY window ROWS UNBOUNDED PRECEDING) AS x FROM days
-- refused 3:63: a frame begins a number of rows before: write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW
