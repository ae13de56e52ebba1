SELECT w, count(*) FROM (SELECT tumble(interval '1 day') AS w, count(*) AS n FROM timed GROUP BY 1) GROUP BY n
-- refused 1:110: this GROUP BY has no window, so its groups would never end: add tumble(interval '1 minute')
