SELECT f.id FROM flights f LEFT JOIN planes p ON f.tail = p.tail AND p.seats > maxx(f.id);
-- refused 1:80: there is no function maxx: write 'max'
