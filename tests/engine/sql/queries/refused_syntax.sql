SELECT id,
  plane(tail FROM flights
-- refused 2:8: this ( has no )
