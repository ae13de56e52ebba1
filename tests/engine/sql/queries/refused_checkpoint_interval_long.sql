SET checkpoint_interval = '99999999999 days';
SELECT id FROM flights
-- refused 1:5: checkpoint_interval = '99999999999 days': write a time above 0, such as '10 seconds' or '500ms'
