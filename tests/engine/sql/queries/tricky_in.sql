SELECT id FROM flights WHERE twice(id) IN (twice(3), 4, add(id, 5)) OR plane(tail) IN ('P-B02')
-- result rows (id)
-- [2]
-- [3]
-- [5]
