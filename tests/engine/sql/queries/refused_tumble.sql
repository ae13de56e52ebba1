SELECT tumble(INTERVAL '1 minute') FROM flights
-- refused 1:8: tumble(...) is a window, for GROUP BY: write it there, too
