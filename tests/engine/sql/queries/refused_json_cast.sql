SELECT id, tail -> 'a'::bigint AS x FROM flights
-- refused 1:23: this casts 'a' alone: write (a -> 'a')::type
