WITH flights AS (SELECT id FROM flights WHERE id < 3) SELECT id FROM flights
-- result rows (id)
-- [0]
-- [1]
-- [2]
