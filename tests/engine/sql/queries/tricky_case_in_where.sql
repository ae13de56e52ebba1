SELECT id FROM flights WHERE CASE WHEN ok THEN is_big(alt) ELSE false END AND plane(tail) <> 'x'
-- result rows (id)
-- [12]
-- [2]
