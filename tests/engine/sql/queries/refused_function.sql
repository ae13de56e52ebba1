SELECT id, plan(tail) FROM flights
-- refused 1:12: there is no function plan: write 'plane'
