SELECT id FROM flights WHERE id IN (SELECT twice(id) FROM flights)
-- refused 1:37: a query inside an expression is not supported: rows pass one by one
