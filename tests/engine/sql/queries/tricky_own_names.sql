CREATE VIEW v AS SELECT id AS "__x", alt AS "__Y", twice(id) AS t FROM flights WHERE id < 5;
SELECT *, twice("__x") AS d FROM v WHERE is_big("__Y" + 40)
-- result rows (__x, __Y, t, d)
-- [1, 27, 2, 2]
-- [2, 64, 4, 4]
-- [3, 11, 6, 6]
