SELECT f.id FROM flights f LEFT JOIN planes p USING (id);
-- refused 1:54: USING (id): planes has no such column: write ON and both names
