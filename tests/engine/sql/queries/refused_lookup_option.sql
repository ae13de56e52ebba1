CREATE TEMPORARY TABLE p (tail TEXT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db', 'lookup.cache.bytes' = '8 MiB');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:92: there is no option lookup.cache.bytes here: write 'lookup.cache.max_bytes'
