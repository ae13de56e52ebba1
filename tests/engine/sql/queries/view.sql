CREATE VIEW v AS SELECT id, plane(tail) AS p FROM flights WHERE id > 3;
SELECT p, id * 2 AS d FROM v WHERE id < 9;
-- result rows (p, d)
-- ["P-B05", 10]
-- ["P-B08", 16]
-- ["P-D04", 8]
-- ["P-D07", 14]
-- ["P-N06", 12]
