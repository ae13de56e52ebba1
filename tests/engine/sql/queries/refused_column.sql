SELECT id,
  talt FROM flights
-- refused 2:3: there is no column talt: write 'alt'
