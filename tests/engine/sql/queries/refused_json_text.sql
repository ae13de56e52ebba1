SELECT id, upper(tail) ->> 'a' AS ok, alt -> 'a' AS x FROM flights
-- refused 1:39: JSON is text, and this is int64
