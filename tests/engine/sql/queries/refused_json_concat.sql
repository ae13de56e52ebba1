SELECT id, 'x' || tail ->> 'a' AS x FROM flights
-- refused 1:24: write brackets: ... || (a ->> 'k'), as || comes first here
