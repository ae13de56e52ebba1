SELECT id, step FROM flights CROSS JOIN UNNEST([1, 2]) AS steps(step) WHERE id < 3
-- result rows (id, step)
-- [0, 1]
-- [0, 2]
-- [1, 1]
-- [1, 2]
-- [2, 1]
-- [2, 2]
