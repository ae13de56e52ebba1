SELECT id FROM flights WHERE twice(alt::bigit) > 5
-- refused 1:41: there is no type bigit: write 'BIGINT'
