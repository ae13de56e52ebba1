SELECT tumble(interval '1 day') AS w, nth_value(id, 2 ORDER BY alt DESC) AS a, string_agg(tail, ',' ORDER BY id DESC) AS t FROM timed GROUP BY w
-- refused 1:1: aggregates with ORDER BY over different columns cannot stand in one SELECT: write two, and join them ON a.window = b.window
