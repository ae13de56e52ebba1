SELECT a.id FROM flights a JOIN flights b ON a.id = b.id
-- refused 1:28: a join needs rows of the same window on both sides, or it would have to remember all rows for ever: select from queries with GROUP BY tumble(...), or from a lookup table
