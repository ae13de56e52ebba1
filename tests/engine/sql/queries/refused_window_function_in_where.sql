SELECT id FROM flights WHERE row_number() OVER () = 1
-- refused 1:30: aggregates, window functions, DISTINCT, ORDER BY and subqueries need more than one row, and rows pass one by one here: leave them out
