CREATE TABLE t (a INT) WITH (connector = 'impulse', event_rat = 10);
SELECT a FROM t
-- refused 1:53: there is no option event_rat here: write 'event_rate'
