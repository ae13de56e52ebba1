SELECT tumble(interval '100 years') AS w, count(*) AS n FROM timed GROUP BY w
-- refused 1:8: a window is no longer than 31 years: write a shorter interval
