CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT sum(n) OVER w AS s FROM days
-- refused 2:15: named windows are not supported: write OVER (PARTITION BY window ...)
