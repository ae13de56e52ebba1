CREATE TEMPORARY TABLE p (tail TEXT, t TEXT GENERATED ALWAYS AS (upper(tail))) WITH (connector = 'sqlite', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:38: t is generated, and not in the database: compute it in the SELECT
