SELECT a.id FROM flights a NATURAL LEFT JOIN flights b
-- refused 1:28: NATURAL JOIN is not supported: write JOIN ... ON a.window = b.window AND ..., or USING (window, ...)
