SELECT count(*) FROM timed GROUP BY tumble(interval '0 s')
-- refused 1:37: a window has no length: write a time above 0
