SELECT count(*) FROM timed GROUP BY hop(interval '7 minutes', interval '1 hour')
-- refused 1:37: the width of a window must be a multiple of its slide: write one that is
