SELECT id FROM flights WHERE tail IN (SELECT tail FROM flights WHERE is_big(alt))
-- result rows (id)
-- [12]
-- [2]
-- [7]
