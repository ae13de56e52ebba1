SET updating_ttl = 'long'; SELECT id FROM flights
-- refused 1:5: updating_ttl = 'long': write a time above 0, such as '1 hour' or '7 days'
