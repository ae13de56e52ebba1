SELECT id FROM timed QUALIFY row_number() OVER (PARTITION BY small ORDER BY day) = 1
-- refused 1:30: all keys would have to be remembered for ever: write SET state_ttl = '1 day', after which a key may come again
