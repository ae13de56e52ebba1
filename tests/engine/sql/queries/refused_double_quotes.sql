SELECT tail = "N00" AS m FROM flights
-- refused 1:15: there is no column N00: there are id, tail, alt, speed, ok, day, tags, pos, cents, small, or 'N00' in single quotes for a text
