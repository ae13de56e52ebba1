SELECT *, tumble(interval '1 hour') AS window FROM timed GROUP BY window
-- refused 1:8: a * is not for GROUP BY: write the keys and the aggregates
