SELECT extract_json_string(tail, '$.a') FROM flights
-- refused 1:8: extract_json_string: JSON is not supported yet in expressions: name its fields as columns of the table
