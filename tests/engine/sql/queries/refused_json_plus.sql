SELECT id, 1 + tail -> 'a' AS x FROM flights
-- refused 1:21: write brackets: ... + (a -> 'k'), as + comes first here
