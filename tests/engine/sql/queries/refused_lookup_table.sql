CREATE TEMPORARY TABLE p (tail TEXT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:24: p (p): there is no such table in the database: make it, or name another one
