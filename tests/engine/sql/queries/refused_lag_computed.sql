SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, lag(n, small) OVER (PARTITION BY small ORDER BY window) AS x FROM days
-- refused 3:22: lag looks back at a number of rows: write a whole number, such as lag(n, 2)
