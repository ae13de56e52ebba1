SELECT datediff('day', day, day) FROM flights
-- refused 1:8: there is no function datediff: write a - b
