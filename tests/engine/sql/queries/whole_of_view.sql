CREATE VIEW planes_of AS SELECT id, plane(tail) AS p FROM flights WHERE is_plane(tail); SELECT p, count(*) AS n FROM planes_of GROUP BY p
-- result rows (p, n)
-- ["P-N00", 1]
-- ["P-N06", 1]
-- ["P-N09", 1]
-- ["P-N12", 1]
-- ["P-N15", 1]
-- ["P-N18", 1]
-- ["P-N21", 1]
