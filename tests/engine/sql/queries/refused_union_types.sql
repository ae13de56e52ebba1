SELECT id, tail FROM flights UNION ALL SELECT id, alt FROM flights
-- refused 1:40: column alt is int64 here, and string in the first SELECT: write CAST(... AS ...)
