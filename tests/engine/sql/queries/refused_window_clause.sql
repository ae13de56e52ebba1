SELECT id FROM flights WHERE alt > 1 WINDOW w AS (PARTITION BY id)
-- refused 1:38: WINDOW is not supported: rows pass one by one
