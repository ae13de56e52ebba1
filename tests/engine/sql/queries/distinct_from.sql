SELECT id, tail IS DISTINCT FROM 'N00' AS d FROM flights WHERE alt IS NOT DISTINCT FROM NULL
-- result rows (id, d)
-- [14, true]
-- [19, true]
-- [4, true]
-- [9, true]
