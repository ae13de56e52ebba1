SELECT id FROM flights WHERE
-- refused 1:29: write an expression here, not the end
