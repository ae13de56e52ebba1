SELECT count(*) FROM flights
-- refused 1:8: an aggregate needs a GROUP BY with a window, which is not supported yet
