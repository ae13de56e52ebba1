SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, lag(n) IGNORE NULLS OVER (PARTITION BY small ORDER BY window) AS x FROM days
-- refused 3:15: lag with IGNORE NULLS may look at any row before: write it without
