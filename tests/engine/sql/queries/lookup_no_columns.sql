SELECT id FROM flights f JOIN planes p ON f.tail = p.tail;
-- result rows (id)
-- [0]
-- [13]
-- [14]
-- [18]
-- [1]
-- [6]
-- [9]
-- [9]
