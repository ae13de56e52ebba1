SET state_ttl = 'long';
SELECT id FROM timed
-- refused 1:5: state_ttl = 'long': write a time above 0, such as '1 hour' or '7 days'
