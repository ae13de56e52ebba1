SELECT row_number() OVER (ORDER BY id) FROM flights
-- refused 1:8: OVER (...) is for results of windows, and for rows with an event time: select from a query with GROUP BY tumble(...), or write WATERMARK FOR column in CREATE TABLE
