SELECT count(*) FROM flights
-- refused 1:8: an aggregate needs a GROUP BY with a window: write GROUP BY tumble(interval '1 minute')
