SET state_ttl = '1 day';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT small, lag(m) OVER (PARTITION BY small ORDER BY window) AS x FROM days
-- refused 3:19: there is no column m: there are small, window, n, s
