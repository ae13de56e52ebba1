SELECT f.id FROM flights f LEFT JOIN planes p ON uper(f.tail) = p.tail;
-- refused 1:50: there is no function uper: write 'upper'
