CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.k, b.k AS after FROM small_ones a JOIN small_ones b ON a.window = b.window AND a.k < b.k
-- result rows (k, after)
-- [0, 1]
-- [0, 1]
-- [0, 1]
-- [0, 1]
-- [0, 2]
-- [0, 2]
-- [0, 2]
-- [1, 2]
-- [1, 2]
-- [1, 2]
