SELECT TOP 5 id FROM flights
-- refused 1:8: TOP is not supported: a stream has no end
