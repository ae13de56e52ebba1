CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT sum(twice(n)) OVER (PARTITION BY window) AS s FROM days
-- refused 2:12: twice is called beside OVER: compute it in the query before
