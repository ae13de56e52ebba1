SELECT count(*) FROM timed GROUP BY tumble(interval '0 s')
-- refused 1:44: a window needs a length: write an interval above 0
