SELECT mod(id, 2) FROM flights
-- refused 1:8: there is no function mod: write a % b
