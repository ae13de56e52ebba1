SELECT g.* FROM flights f
-- refused 1:8: there is no table g here: write f.*
