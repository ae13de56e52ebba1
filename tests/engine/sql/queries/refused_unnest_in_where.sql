SELECT id FROM flights WHERE unnest(tags) = 'a'
-- refused 1:30: unnest may only stand among the items of a SELECT
