SELECT unnest([count(*), 1]) AS n FROM flights GROUP BY small
-- refused 1:1: the results of this GROUP BY without a window are updated with each row, and unnest would make several of one: write unnest in a view before it
