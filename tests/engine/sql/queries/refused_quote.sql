SELECT 'abc FROM flights
-- refused 1:8: this ' has no end: close the quote
