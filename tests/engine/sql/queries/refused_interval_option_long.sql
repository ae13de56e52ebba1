CREATE TABLE n (counter BIGINT) WITH (connector = 'impulse', message_count = '3', event_time_interval = INTERVAL '99999999999 days');
SELECT counter FROM n
-- refused 1:83: event_time_interval = '99999999999 days': write a time such as 10 ms or INTERVAL '1 second'
