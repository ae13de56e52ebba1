SELECT upper(*) AS u FROM flights
-- refused 1:8: a * is for count(*): write the columns
