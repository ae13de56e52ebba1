SELECT row_number() OVER (ORDER BY id) FROM flights
-- refused 1:8: OVER (...) is for results of windows: select from a query with GROUP BY tumble(...)
