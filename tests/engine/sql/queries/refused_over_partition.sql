CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT row_number() OVER (PARTITION BY small ORDER BY n) AS place FROM days
-- refused 2:21: other windows may be over later: write OVER (PARTITION BY window ...)
