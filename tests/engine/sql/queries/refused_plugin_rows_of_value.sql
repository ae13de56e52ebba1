SELECT id FROM flights, twice(alt)
-- refused 1:25: twice has one value for each row: write it among the items
