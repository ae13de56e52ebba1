SELECT a.id FROM flights a, flights b
-- refused 1:27: joins are not supported yet: a SELECT reads one table or query
