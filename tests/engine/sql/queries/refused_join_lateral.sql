SELECT a.id FROM flights a JOIN LATERAL (SELECT id FROM flights) b ON true
-- refused 1:33: LATERAL is not supported: for lists, write unnest(list) among the items
