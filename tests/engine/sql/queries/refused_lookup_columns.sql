CREATE TEMPORARY TABLE p (tail TEXT, maker BIGINT) WITH (connector = 'sqlite', uri = 'sqlite:planes.db', table = 'planes');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:38: p (planes): column 'maker' is TEXT in the database, which is not read as int64: write string
