CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT a.k, b.n AS good, c.top, c.k AS other FROM small_ones a JOIN good_ones b ON a.window = b.window AND a.k = b.k LEFT JOIN small_ones c ON c.window = b.window AND c.k = a.k + 1
-- result rows (k, good, top, other)
-- [1, 1, 16, 2]
-- [1, 1, 79, 2]
-- [1, 2, 64, 2]
-- [2, 1, null, null]
-- [2, 1, null, null]
-- [2, 1, null, null]
