SELECT * EXCEPT (nothing) FROM flights
-- refused 1:18: there is no column nothing to leave out: there are id, tail, alt, speed, ok, day, tags, pos, cents, small
