CREATE TABLE t (a INT) WITH (connector = 'kafak');
SELECT id FROM flights
-- refused 1:30: there is no connector 'kafak': write 'kafka'
