WITH low AS (SELECT id, alt FROM flights WHERE alt < 20), high AS (SELECT id, alt FROM timed WHERE alt > 60)
SELECT a.id, a.alt + 1 AS n FROM (SELECT * FROM low UNION ALL SELECT * FROM high) a WHERE a.id <> 4
-- result rows (id, n)
-- [0, -9]
-- [10, 1]
-- [12, 75]
-- [15, 6]
-- [17, 80]
-- [2, 65]
-- [20, 11]
-- [22, -5]
-- [3, 12]
-- [5, -4]
-- [7, 70]
-- [8, 17]
