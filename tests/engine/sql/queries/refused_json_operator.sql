SELECT id, tail->>'a' AS a FROM flights
-- refused 1:16: ->>: JSON is not supported yet in expressions: name its fields as columns of the table
