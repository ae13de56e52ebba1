CREATE TEMPORARY TABLE p (tail TEXT) WITH (connector = 'filesystem', path = 'x', format = 'csv');
SELECT id FROM flights f JOIN p ON f.tail = p.tail;
-- refused 1:44: a TEMPORARY TABLE is in a database: write WITH (connector = 'postgres') or 'sqlite' or 'redis'
