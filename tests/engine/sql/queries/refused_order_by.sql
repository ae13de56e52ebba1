SELECT id FROM flights ORDER BY id
-- refused 1:24: ORDER BY is not supported here: a stream has no end to sort
