SELECT small, count(*) FROM flights GROUP BY small
-- refused 1:37: GROUP BY is not supported yet: rows pass one by one
