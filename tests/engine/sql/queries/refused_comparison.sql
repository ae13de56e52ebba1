SELECT id FROM flights WHERE tail = ok
-- refused 1:30: there is no Utf8 = Boolean: write CAST(... AS ...) for one of them
