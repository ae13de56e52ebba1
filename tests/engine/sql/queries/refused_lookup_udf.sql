SELECT id FROM flights f JOIN planes p ON plane(f.tail) = p.tail;
-- refused 1:43: ON has no calls of functions: call plane in a subquery, and join that
