INSERT INTO outt SELECT id FROM flights
-- refused 1:13: there is no table outt: write 'out'
