SET state_ttl = '1000 days';
CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
CREATE VIEW changes AS SELECT small, window, twice(n) AS t, lag(n) OVER (PARTITION BY small ORDER BY window.start) AS before FROM days;
SELECT label(CAST(small AS TEXT), t) AS l, positive(before) AS p FROM changes WHERE before IS NOT NULL;
-- reference SET state_ttl = '1000 days';
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
-- reference CREATE VIEW changes AS SELECT small, window, twice(n) AS t, lag(n) OVER (PARTITION BY small ORDER BY window.start) AS before FROM days;
-- reference SELECT label(CAST(small AS TEXT), t) AS l, positive(before) AS p FROM changes WHERE before IS NOT NULL;
-- result rows (l, p)
-- ["0/2", 1]
-- ["0/2", 1]
-- ["0/2", 1]
-- ["0/2", 1]
-- ["0/2", 1]
-- ["0/2", 2]
-- ["1/2", 1]
-- ["1/2", 1]
-- ["1/2", 1]
-- ["1/2", 1]
-- ["1/2", 2]
-- ["1/4", 1]
-- ["2/2", 1]
-- ["2/2", 1]
-- ["2/2", 1]
-- ["2/2", 1]
-- ["2/2", 2]
-- ["2/4", 1]
