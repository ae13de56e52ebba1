SELECT id FROM flights LIMIT 3
-- refused 1:24: LIMIT is not supported here: a stream has no end; for tests, give the table a 'source.limit'
