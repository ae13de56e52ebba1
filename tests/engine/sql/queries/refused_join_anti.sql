SELECT a.id FROM flights a LEFT ANTI JOIN flights b ON a.id = b.id
-- refused 1:33: ANTI JOIN is not supported: write LEFT JOIN ... ON a.window = b.window AND ... WHERE b.window IS NULL
