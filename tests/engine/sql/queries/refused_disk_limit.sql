SET disk_limit = 0; SELECT id FROM flights
-- refused 1:5: disk_limit = '0': write a size above 0, such as '100GiB'
