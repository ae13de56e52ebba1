SELECT f.talt FROM flights f
-- refused 1:10: there is no column f.talt: write 'alt'
