SELECT json_get_int('{"a": 1}', 'a') AS a, count(*) AS n FROM flights GROUP BY 1
-- result rows (a, n)
-- [1, 24]
