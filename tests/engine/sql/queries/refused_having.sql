SELECT small FROM flights HAVING small > 1
-- refused 1:27: HAVING is not supported yet: rows pass one by one
