SELECT id FROM flights WHERE is_big(id * 5) AND is_plane(tail)
-- result rows (id)
-- [12]
-- [15]
-- [18]
-- [21]
