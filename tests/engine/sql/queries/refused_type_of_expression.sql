SELECT id + tail FROM flights
-- refused 1:8: Cannot coerce arithmetic expression Int64 + Utf8 to valid types
