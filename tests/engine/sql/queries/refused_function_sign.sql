SELECT sign(alt) AS s FROM flights
-- refused 1:8: there is no function sign: write signum(x)
