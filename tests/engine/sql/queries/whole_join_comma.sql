SELECT count(*) AS n FROM flights a, flights b
-- result rows (n)
-- [576]
