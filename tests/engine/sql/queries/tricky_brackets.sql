SELECT (twice(id)) AS a, twice(id)::text AS b, ((twice(id))) + 1 AS c FROM flights
WHERE ((is_big(id * 9)) AND (ok)) AND ((id > 3))
-- result rows (a, b, c)
-- [12, "12", 13]
-- [16, "16", 17]
-- [20, "20", 21]
-- [24, "24", 25]
-- [28, "28", 29]
-- [32, "32", 33]
-- [36, "36", 37]
-- [40, "40", 41]
-- [44, "44", 45]
