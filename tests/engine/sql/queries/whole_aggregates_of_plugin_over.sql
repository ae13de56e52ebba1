INSERT INTO out
SELECT id, total(alt) OVER (PARTITION BY small) AS p, total(alt) OVER (ORDER BY id) AS o,
       total(alt) OVER (PARTITION BY small ORDER BY id ROWS UNBOUNDED PRECEDING) AS r
FROM flights;
-- reference INSERT INTO out SELECT id, sum(alt) OVER (PARTITION BY small) AS p, sum(alt) OVER (ORDER BY id) AS o, sum(alt) OVER (PARTITION BY small ORDER BY id ROWS UNBOUNDED PRECEDING) AS r FROM flights;
-- result out (id, p, o, r)
-- [0, 185, -10, -10]
-- [1, 153, 17, 27]
-- [10, 153, 204, 96]
-- [11, 232, 241, 112]
-- [12, 185, 315, 107]
-- [13, 153, 336, 117]
-- [14, 232, 336, 112]
-- [15, 185, 341, 112]
-- [16, 153, 383, 159]
-- [17, 232, 462, 191]
-- [18, 185, 488, 138]
-- [19, 153, 488, 159]
-- [2, 232, 81, 64]
-- [20, 232, 498, 201]
-- [21, 185, 545, 185]
-- [22, 153, 539, 153]
-- [23, 232, 570, 232]
-- [3, 185, 92, 1]
-- [4, 153, 92, 27]
-- [5, 232, 87, 59]
-- [6, 185, 119, 33]
-- [7, 153, 188, 96]
-- [8, 232, 204, 75]
-- [9, 185, 204, 33]
