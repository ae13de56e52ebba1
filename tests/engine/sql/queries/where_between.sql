SELECT id FROM flights WHERE twice(id) BETWEEN 10 AND 30 AND ok
-- result rows (id)
-- [10]
-- [12]
-- [14]
-- [6]
-- [8]
