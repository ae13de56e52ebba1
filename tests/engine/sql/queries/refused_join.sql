SELECT a.id FROM flights a JOIN flights b ON a.id = b.id
-- refused 1:28: joins are not supported yet: a SELECT reads one table or query
