CREATE TEMPORARY TABLE planes2 (tail TEXT);
SELECT id FROM flights;
-- refused 1:24: a TEMPORARY TABLE is in a database: write WITH (connector = 'postgres') or 'sqlite' or 'redis'
