SELECT id FROM flights ASOF JOIN planes ON flights.tail = planes.tail
-- refused 1:41: ASOF JOIN is not supported: write JOIN ... ON a.window = b.window
