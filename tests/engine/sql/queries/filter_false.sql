SELECT id, plane(tail) AS p FROM flights WHERE false OR NOT true
-- result rows (id, p)
