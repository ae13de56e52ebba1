SELECT id FROM flights WHERE is_big(alt)
-- result rows (id)
-- [12]
-- [17]
-- [2]
-- [7]
