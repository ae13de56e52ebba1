SELECT id, tail FROM flights ORDER BY id DESC NULLS LAST LIMIT 3
-- result rows (id, tail)
-- [21, "N21"]
-- [22, "D22"]
-- [23, "B23"]
