WITH days AS (SELECT tumble(interval '1 day') AS window, count(*) AS n FROM timed GROUP BY 1) SELECT max(n) AS most FROM days
-- result rows (most)
-- [4]
