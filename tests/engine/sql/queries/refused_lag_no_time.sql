SET state_ttl = '1 day';
SELECT lag(id) OVER (ORDER BY id) AS x FROM flights
-- refused 2:8: OVER (...) is for results of windows, and for rows with an event time: select from a query with GROUP BY tumble(...), or write WATERMARK FOR column in CREATE TABLE
