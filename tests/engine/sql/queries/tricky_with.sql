WITH a AS (SELECT id, tail FROM flights), b AS (SELECT * FROM a WHERE id > 3)
SELECT b.id, plane(b.tail) AS p FROM b WHERE is_plane(b.tail)
-- result rows (id, p)
-- [12, "P-N12"]
-- [15, "P-N15"]
-- [18, "P-N18"]
-- [21, "P-N21"]
-- [6, "P-N06"]
-- [9, "P-N09"]
