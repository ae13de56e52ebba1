SELECT small FROM timed WHERE tumble(interval '1 hour') = 1
-- refused 1:31: tumble(...) is a window, for GROUP BY: write it there, too
