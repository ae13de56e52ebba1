SELECT id, tags FROM flights UNION ALL SELECT id, pos FROM flights
-- refused 1:40: column pos is struct<lat: double, lon: double> here, and list<element: string> in the first SELECT: write CAST(... AS ...)
