INSERT INTO out SELECT letter, count(*) AS n, total(place) AS t FROM flights, letters(tail) GROUP BY letter;
INSERT INTO out2
SELECT DISTINCT x.small, l.a, parts FROM (SELECT * FROM flights WHERE is_big(alt)) AS x
LEFT JOIN letters(x.tail) AS l (a, b) ON TRUE CROSS JOIN LATERAL parts(l.a);
-- reference INSERT INTO out SELECT l AS letter, count(*) AS n, sum(b) AS t FROM (SELECT unnest(string_to_array(tail, NULL)) AS l, unnest(CASE WHEN tail IS NULL THEN NULL ELSE make_array(1, 2, 3) END) AS b FROM flights) WHERE l <> '1' GROUP BY 1;
-- reference INSERT INTO out2 SELECT DISTINCT small, a, p AS parts FROM (SELECT small, a, unnest(make_array(a, '')) AS p FROM (SELECT small, unnest(string_to_array(tail, NULL)) AS a FROM flights WHERE alt > 50) WHERE a <> '1');
-- result out (letter, n, t)
-- ["0", 11, 24]
-- ["2", 7, 17]
-- ["3", 2, 6]
-- ["4", 2, 6]
-- ["5", 2, 6]
-- ["6", 2, 6]
-- ["7", 1, 3]
-- ["8", 2, 6]
-- ["9", 2, 6]
-- ["B", 7, 7]
-- ["D", 7, 7]
-- ["N", 7, 7]
-- result out2 (small, a, parts)
-- [0, "2", ""]
-- [0, "2", "2"]
-- [0, "N", ""]
-- [0, "N", "N"]
-- [1, "0", ""]
-- [1, "0", "0"]
-- [1, "7", ""]
-- [1, "7", "7"]
-- [1, "D", ""]
-- [1, "D", "D"]
-- [2, "0", ""]
-- [2, "0", "0"]
-- [2, "2", ""]
-- [2, "2", "2"]
-- [2, "B", ""]
-- [2, "B", "B"]
