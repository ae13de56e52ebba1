SELECT id FROM flights WHERE tail
-- refused 1:30: WHERE takes a BOOLEAN, and this is Utf8: write such as a > 0
