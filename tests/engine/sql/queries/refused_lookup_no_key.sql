SELECT id FROM flights f JOIN planes p ON f.alt < p.seats;
-- refused 1:26: a lookup needs a key: a column of planes that equals something of the row: ON f.column = p.tail
