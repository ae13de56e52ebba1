SELECT id, plane(tail) AS p FROM flights WHERE id % 3 = 0 AND is_big(twice(id * 3)) AND tail IS NOT NULL
-- result rows (id, p)
-- [12, "P-N12"]
-- [15, "P-N15"]
-- [18, "P-N18"]
-- [21, "P-N21"]
-- [9, "P-N09"]
