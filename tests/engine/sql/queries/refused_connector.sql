CREATE TABLE t (a INT) WITH (connector = 'kafak');
SELECT id FROM flights
-- refused 1:30: there is no connector 'kafak': there are impulse, filesystem, single_file, stdin, stdout, blackhole, postgres, sqlite
