SELECT (SELECT max(id) FROM flights) FROM flights
-- refused 1:9: a query inside an expression is not supported: rows pass one by one
