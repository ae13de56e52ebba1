SELECT id FROM flights f LEFT JOIN planes p ON f.tail = p.tail AND is_big(p.seats);
-- refused 1:68: ON has no calls of functions: call is_big in a subquery, and join that
