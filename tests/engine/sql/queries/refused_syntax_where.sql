SELECT id FROM flights WHERE
-- refused 1:29: Expected: an expression, found: EOF
