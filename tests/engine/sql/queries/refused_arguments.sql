SELECT substr(tail), upper() FROM flights
-- refused 1:8: substr lacks its start: write substr(text, 2), or substr(text, 2, 3)
