SELECT tumble(interval '1 hour') AS window, small FROM timed
-- refused 1:8: tumble(...) is a window, for GROUP BY: write it there, too
