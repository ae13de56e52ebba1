SET on_error = 'ignore'; SELECT id FROM flights
-- refused 1:5: on_error = 'ignore': there are fail, null, drop, dead_letter
