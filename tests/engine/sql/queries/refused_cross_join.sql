SELECT a.id FROM flights a CROSS JOIN flights b
-- refused 1:28: CROSS JOIN is not supported: it would have to remember all rows for ever: write JOIN ... ON a.window = b.window
