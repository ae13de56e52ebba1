SELECT day + interval '5 monkeys' FROM flights
-- refused 1:8: there is no interval '5 monkeys': write such as '5 minutes'
