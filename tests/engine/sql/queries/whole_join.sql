SELECT a.id, b.tail FROM flights a JOIN flights b ON a.id = b.id AND is_big(a.alt)
-- result rows (id, tail)
-- [12, "N12"]
-- [17, null]
-- [2, "B02"]
-- [7, "D07"]
