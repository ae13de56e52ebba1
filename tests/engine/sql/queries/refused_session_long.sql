SELECT session(interval '12000 days') AS w, count(*) AS n FROM timed GROUP BY w
-- refused 1:8: a window is no longer than 11574 days: write a shorter interval
