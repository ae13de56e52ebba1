SELECT id, upper(tial ->> 'a') AS x FROM flights
-- refused 1:18: there is no column tial: write 'tail'
