SELECT id, tail ->> 'a' * 2 AS x FROM flights
-- refused 1:25: write brackets: (a ->> 'k') * ..., as * comes first here
