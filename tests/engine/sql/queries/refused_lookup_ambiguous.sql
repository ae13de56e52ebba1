SELECT tail FROM flights f JOIN planes p ON f.tail = p.tail;
-- refused 1:8: tail is a column of f and p: write f.tail
