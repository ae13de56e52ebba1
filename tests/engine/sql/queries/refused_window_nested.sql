SELECT tumble(interval '1 hour') AS window, sum(max(alt)) AS s FROM timed GROUP BY 1
-- refused 1:49: an aggregate in an aggregate: write a view with the inner one, in a window
