SELECT id, extract_json(tail, tail) AS x FROM flights
-- refused 1:31: extract_json needs a text and a path in single quotes, as in extract_json(a, '$.b[0]')
