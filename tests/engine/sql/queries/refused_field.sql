SELECT id, pos.latt FROM flights
-- refused 1:16: there is no field latt: write 'lat'
