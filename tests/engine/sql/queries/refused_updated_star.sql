SELECT * FROM flights GROUP BY small
-- refused 1:8: a * is not for GROUP BY: write the keys and the aggregates
