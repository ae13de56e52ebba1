CREATE TEMPORARY TABLE p (tail TEXT METADATA FROM 'key' PRIMARY KEY) WITH (connector = 'sqlite', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:51: tail is a column of the database: leave out METADATA FROM
