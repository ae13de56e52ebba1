SELECT plane(tail) AS p FROM (SELECT tail FROM flights WHERE tail IS NOT NULL ORDER BY id LIMIT 2) x WHERE is_plane(tail)
-- result rows (p)
-- ["P-N00"]
