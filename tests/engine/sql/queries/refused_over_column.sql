CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT sum(m) OVER (PARTITION BY window) AS s FROM days
-- refused 2:12: there is no column m: there are small, window, n, s
