SELECT id, tail -> speed AS x FROM flights
-- refused 1:12: a step is a key or an index, and this is double
