SELECT f.id FROM flights f JOIN planes p ON f.tail = p.tail AND f.tail = p.seats;
-- refused 1:45: planes (planes): column 'seats' is INTEGER in the database, and no string equals it: cast what it is compared with
