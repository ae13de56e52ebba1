SELECT x.p FROM (SELECT plane(tail) AS p, id FROM (SELECT * FROM flights WHERE ok) AS y WHERE is_big(id * 9)) x
WHERE x.p IS NOT NULL
-- result rows (p)
-- ["P-B08"]
-- ["P-B14"]
-- ["P-B20"]
-- ["P-D16"]
-- ["P-D22"]
-- ["P-N06"]
-- ["P-N12"]
-- ["P-N18"]
