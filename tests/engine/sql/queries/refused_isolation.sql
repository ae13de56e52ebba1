SET isolation = 'proces'; SELECT id FROM flights
-- refused 1:5: isolation = 'proces': write 'process'
