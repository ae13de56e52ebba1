SELECT f.id, p.seat FROM flights f JOIN planes p ON f.tail = p.tail;
-- refused 1:14: p has no column seat: write 'seats'
