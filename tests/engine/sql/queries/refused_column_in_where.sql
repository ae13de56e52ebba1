SELECT id FROM flights
WHERE altt > 3
-- refused 2:7: there is no column altt: write 'alt'
