CREATE TABLE c AS SELECT id, tail FROM flights WHERE ok;
SELECT plane(tail) AS p FROM c;
-- result rows (p)
-- ["P-B02"]
-- ["P-B08"]
-- ["P-B14"]
-- ["P-B20"]
-- ["P-D04"]
-- ["P-D16"]
-- ["P-D22"]
-- ["P-N00"]
-- ["P-N06"]
-- ["P-N12"]
-- ["P-N18"]
-- [null]
