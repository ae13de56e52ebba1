SELECT id FROM flights WHERE (is_big(alt) AND ok) OR (is_plane(tail) AND NOT ok)
-- result rows (id)
-- [12]
-- [15]
-- [21]
-- [2]
-- [9]
