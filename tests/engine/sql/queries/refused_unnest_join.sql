SELECT id FROM flights CROSS JOIN UNNEST(tags)
-- refused 1:35: UNNEST is not supported here: write unnest(list) among the items
