SELECT tail::json -> 'a' AS a FROM flights
-- refused 1:8: JSON is text: leave the cast out
