SELECT id FROM flights WHERE id BETWEEN 3 AND 12 AND small IN (0, 2)
-- result rows (id)
-- [11]
-- [12]
-- [3]
-- [5]
-- [6]
-- [8]
-- [9]
