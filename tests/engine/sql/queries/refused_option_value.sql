CREATE TABLE t WITH (connector = 'impulse', event_rate = 'fast');
SELECT counter FROM t
-- refused 1:45: event_rate = 'fast': write a number of rows per second
