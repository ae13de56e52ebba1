SELECT id, day - day > INTERVAL '1 day' AS late FROM flights
-- refused 1:24: days and hours of intervals are compared one by one, so that 31 hours are less than 1 day: write a > b + INTERVAL '1 day' instead of a - b > INTERVAL '1 day'
