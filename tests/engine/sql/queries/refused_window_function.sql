SELECT row_number() OVER (ORDER BY id) FROM flights
-- refused 1:1: aggregates, window functions, DISTINCT, ORDER BY and subqueries need more than one row, and rows pass one by one here: leave them out
