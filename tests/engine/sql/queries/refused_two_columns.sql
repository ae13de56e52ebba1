SELECT id, alt AS id FROM flights
-- refused 1:12: there are two columns id: write AS and another name
