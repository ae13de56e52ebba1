SELECT count(*) FROM timed GROUP BY tumble(interval '1 hour'), hop(interval '1 hour', interval '2 hours')
-- refused 1:64: this GROUP BY has two windows: leave out one
