SET updating_ttl = interval '1 hour'; SELECT id FROM flights
-- refused 1:5: updating_ttl: updating SQL is not supported. Leave it out
