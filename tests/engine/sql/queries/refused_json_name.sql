SELECT id, json_get_string(tail, 'a') AS x FROM flights
-- refused 1:12: there is no function json_get_string: write 'json_get_str'
