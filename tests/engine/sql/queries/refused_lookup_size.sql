CREATE TEMPORARY TABLE p (tail TEXT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db', 'lookup.cache.max_bytes' = 'much');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:92: lookup.cache.max_bytes = 'much': write a number of bytes, such as 8000000 or 8 MiB; 0 for no cache
