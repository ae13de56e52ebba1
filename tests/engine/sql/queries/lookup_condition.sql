SELECT id, p.seats FROM flights f JOIN planes p ON p.seats < 100 AND f.tail = p.tail AND f.id > 5 WHERE share < 1;
-- result rows (id, seats)
-- [14, 0]
-- [18, 50]
-- [9, 4]
