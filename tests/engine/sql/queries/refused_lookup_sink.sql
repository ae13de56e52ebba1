CREATE TABLE p (tail TEXT) WITH (connector = 'sqlite', type = 'sink', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 2:31: p is a sink: to look rows up in it, write CREATE TEMPORARY TABLE
