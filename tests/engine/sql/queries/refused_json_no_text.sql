SELECT id, json_get_int() AS x FROM flights
-- refused 1:12: json_get_int needs a text, as in json_get_int(a, 'b', 0)
