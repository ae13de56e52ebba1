CREATE TABLE p (tail TEXT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 2:31: p is a table: to look rows up in it, write CREATE TEMPORARY TABLE, or type = 'source' to join all of its rows
