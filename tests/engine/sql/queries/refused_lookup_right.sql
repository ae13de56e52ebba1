SELECT id FROM flights f RIGHT JOIN planes p ON f.tail = p.tail;
-- refused 1:26: planes is looked up row by row: write JOIN or LEFT JOIN
