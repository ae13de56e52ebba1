SELECT id AS "window", alt AS "order" FROM flights WHERE id < 4
-- result rows (window, order)
-- [0, -10]
-- [1, 27]
-- [2, 64]
-- [3, 11]
