SELECT id FROM flights WHERE id > 1000
-- result rows (id)
