SELECT count(*) FROM timed GROUP BY tumble(interval '1 hour', interval '1 hour')
-- refused 1:37: write tumble(interval '1 hour')
