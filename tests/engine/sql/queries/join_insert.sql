CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
INSERT INTO out SELECT a.k, b.n FROM small_ones a JOIN good_ones b ON a.window = b.window AND a.k = b.k; INSERT INTO out2 SELECT k, n FROM good_ones
-- result out (k, n)
-- [1, 1]
-- [1, 1]
-- [1, 2]
-- [2, 1]
-- [2, 1]
-- [2, 1]
-- result out2 (k, n)
-- [1, 1]
-- [1, 1]
-- [1, 2]
-- [2, 1]
-- [2, 1]
-- [2, 1]
-- [2, 1]
-- [3, 1]
-- [3, 1]
-- [3, 2]
