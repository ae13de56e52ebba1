SELECT tumble(interval '1 day') AS w, total(total(alt)) AS t FROM timed GROUP BY w
-- refused 1:45: an aggregate in an aggregate: write a view with the inner one, in a window
