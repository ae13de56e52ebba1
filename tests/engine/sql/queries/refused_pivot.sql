SELECT * FROM flights PIVOT (sum(id) FOR tail IN ('N00'))
-- refused 1:23: PIVOT is not supported: write sum(a) FILTER (WHERE b = 'x') AS x for each column
