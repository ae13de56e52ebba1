SELECT tail, max(alt) AS top FROM flights GROUP BY tail HAVING is_big(max(alt))
-- result rows (tail, top)
-- ["B02", 64]
-- ["D07", 69]
-- ["N12", 74]
-- [null, 79]
