SELECT row_time() FROM flights
-- refused 1:8: there is no function row_time: write the column of the event time
