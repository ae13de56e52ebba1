SELECT id, tail -> AS x FROM flights
-- refused 1:17: write a key or an index behind ->
