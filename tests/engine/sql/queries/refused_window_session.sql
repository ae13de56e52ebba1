SELECT count(*) FROM timed GROUP BY session(interval '1 hour', interval '2 hours')
-- refused 1:37: write session(interval '30 seconds')
