SELECT id FROM flights WHERE id > $1
-- refused 1:30: there are no parameters here: write the value
