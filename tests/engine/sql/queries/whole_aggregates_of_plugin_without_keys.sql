INSERT INTO out SELECT total(alt) AS t, weighted(alt, id) AS w, total(id) - sum(id) AS z FROM flights;
INSERT INTO out2 SELECT total(alt) AS t, nulls(tail) AS n, weighted(alt, id) AS w FROM flights WHERE id > 1000;
-- reference INSERT INTO out SELECT sum(alt) AS t, sum(alt * id) / CAST(sum(id) FILTER (WHERE alt IS NOT NULL) AS DOUBLE) AS w, sum(id) - sum(id) AS z FROM flights;
-- reference INSERT INTO out2 SELECT sum(alt) AS t, 0 AS n, CAST(NULL AS DOUBLE) AS w FROM flights WHERE id > 1000 HAVING true;
-- result out (t, w, z)
-- [570, 29.82608695652174, 0]
-- result out2 (t, n, w)
-- [null, 0, null]
