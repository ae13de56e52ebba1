SELECT id FROM flights WHERE day - day BETWEEN INTERVAL '0 hours' AND INTERVAL '1 month'
-- refused 1:71: days and hours of intervals are compared one by one, so that 31 hours are less than 1 day: write a > b + INTERVAL '1 month' instead of a - b > INTERVAL '1 month'
