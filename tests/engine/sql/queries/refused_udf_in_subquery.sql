SELECT id FROM flights WHERE id IN (SELECT twice(id) FROM flights)
-- refused 1:44: twice is called in a subquery: write the query as a view, and select from that
