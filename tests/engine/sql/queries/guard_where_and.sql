SELECT id FROM flights WHERE alt >= 0 AND positive(alt) < 30
-- result rows (id)
-- [10]
-- [13]
-- [15]
-- [18]
-- [1]
-- [20]
-- [3]
-- [8]
