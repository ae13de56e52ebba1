SELECT id FROM flights UNION ALL SELECT id FROM flights LIMIT 3
-- refused 1:57: LIMIT is not supported here: a stream has no end; for tests, give the table a 'source.limit'
