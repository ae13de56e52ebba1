SELECT id, tail FROM flights WHERE is_plane(tail)
-- result rows (id, tail)
-- [0, "N00"]
-- [12, "N12"]
-- [15, "N15"]
-- [18, "N18"]
-- [21, "N21"]
-- [6, "N06"]
-- [9, "N09"]
