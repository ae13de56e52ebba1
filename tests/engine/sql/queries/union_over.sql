CREATE VIEW days AS SELECT tumble(interval '2 days') AS window, small, count(*) AS n FROM timed GROUP BY window, small
UNION ALL SELECT tumble(interval '2 days') AS window, small + 10, count(*) AS n FROM timed WHERE ok GROUP BY window, small;
SELECT small, n, row_number() OVER (PARTITION BY window ORDER BY n, small) AS place FROM days
-- reference CREATE VIEW days AS SELECT tumble(interval '2 days') AS window, small, count(*) AS n FROM timed GROUP BY 1, small
-- reference UNION ALL SELECT tumble(interval '2 days') AS window, small + 10, count(*) AS n FROM timed WHERE ok GROUP BY 1, small;
-- reference SELECT small, n, row_number() OVER (PARTITION BY window ORDER BY n, small) AS place FROM days
-- result rows (small, n, place)
-- [0, 1, 1]
-- [0, 2, 3]
-- [0, 2, 4]
-- [0, 3, 6]
-- [1, 1, 2]
-- [1, 2, 3]
-- [1, 2, 4]
-- [1, 3, 6]
-- [10, 1, 1]
-- [10, 1, 1]
-- [10, 2, 5]
-- [11, 1, 1]
-- [11, 1, 2]
-- [11, 1, 2]
-- [11, 1, 4]
-- [12, 1, 2]
-- [12, 1, 3]
-- [12, 2, 5]
-- [2, 1, 3]
-- [2, 2, 4]
-- [2, 2, 5]
-- [2, 3, 6]
