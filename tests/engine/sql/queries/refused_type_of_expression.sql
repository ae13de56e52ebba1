SELECT id + tail FROM flights
-- refused 1:8: there is no Int64 + Utf8: write CAST(... AS ...) for one of them
