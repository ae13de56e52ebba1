SET state_ttl = '1000 days';
CREATE VIEW numbered AS SELECT id, alt % 4 AS k, day, row_number() OVER (PARTITION BY alt % 4, left(tail, 1) ORDER BY t.day) AS rn FROM timed t WHERE id > 2;
SELECT id, k, rn FROM numbered WHERE rn <= 1 AND k IS NOT NULL;
-- result rows (id, k, rn)
-- [10, 0, 1]
-- [11, 1, 1]
-- [12, 2, 1]
-- [15, 1, 1]
-- [16, 2, 1]
-- [20, 2, 1]
-- [21, 3, 1]
-- [22, -2, 1]
-- [23, 3, 1]
-- [3, 3, 1]
-- [5, -1, 1]
-- [6, 0, 1]
-- [7, 1, 1]
-- [8, 0, 1]
