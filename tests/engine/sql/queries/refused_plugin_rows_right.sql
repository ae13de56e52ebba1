SELECT id FROM flights RIGHT JOIN letters(tail) ON TRUE
-- refused 1:24: rows of a function are those of a row before it: write CROSS JOIN, or LEFT JOIN
