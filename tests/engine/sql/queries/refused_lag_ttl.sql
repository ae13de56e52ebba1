CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
SELECT lag(n) OVER (PARTITION BY small ORDER BY window) AS before FROM days
-- refused 2:8: rows of all keys would have to be remembered for ever: write SET state_ttl = '1 day', after which a key without rows is forgotten
