SELECT id, CAST(tags AS INT) AS n FROM flights
-- refused 1:12: there is no cast from List(Utf8, field: 'element') to Int32: write another type
