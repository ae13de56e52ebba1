SELECT id FROM flights WHERE alt > 0 AND is_big(alt) OR small = 1 AND is_plane(tail)
-- result rows (id)
-- [12]
-- [17]
-- [2]
-- [7]
