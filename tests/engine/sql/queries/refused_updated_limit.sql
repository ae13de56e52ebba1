SELECT small, count(*) AS n FROM flights GROUP BY small LIMIT 3
-- refused 1:57: LIMIT is not supported here: a stream has no end; for tests, give the table a 'source.limit'
