SELECT plane(tial) FROM flights
-- refused 1:14: there is no column tial: write 'tail'
