SELECT flights.id FROM flights LEFT JOIN flights ON flights.id = flights.id
-- refused 1:42: there are two tables flights here: write AS and another name
