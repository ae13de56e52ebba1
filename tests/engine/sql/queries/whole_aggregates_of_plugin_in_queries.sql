INSERT INTO out
SELECT id FROM flights f WHERE alt > (SELECT total(alt) / 6 FROM flights g WHERE g.small = f.small);
INSERT INTO out2 SELECT small, total(alt) AS t FROM flights GROUP BY ROLLUP(small);
-- reference INSERT INTO out SELECT id FROM flights f WHERE alt > (SELECT sum(alt) / 6 FROM flights g WHERE g.small = f.small);
-- reference INSERT INTO out2 SELECT small, sum(alt) AS t FROM flights GROUP BY ROLLUP(small);
-- result out (id)
-- [12]
-- [16]
-- [17]
-- [1]
-- [21]
-- [2]
-- [6]
-- [7]
-- result out2 (small, t)
-- [0, 185]
-- [1, 153]
-- [2, 232]
-- [null, 570]
