SELECT tumble(interval '1 hour') AS window, alt + 1 AS a FROM timed GROUP BY 1
-- refused 1:45: alt is neither in GROUP BY nor in an aggregate: write it there, or max(alt)
