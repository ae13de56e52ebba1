SELECT unnest(pos) FROM flights
-- refused 1:1: unnest of a struct makes several columns: name its fields, as in s['a']
