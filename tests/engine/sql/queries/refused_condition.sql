SELECT id FROM flights WHERE tail
-- refused 1:30: Cannot create filter with non-boolean predicate 'flights.tail' returning Utf8
