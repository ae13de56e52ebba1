SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, lag(n) OVER (PARTITION BY small ORDER BY n) AS x FROM days
-- refused 3:22: other windows may be over later: write OVER (PARTITION BY window ...)
