SELECT tail FROM flights WHERE is_big(add(alt, small))
-- result rows (tail)
-- ["B02"]
-- ["D07"]
-- ["N12"]
-- [null]
