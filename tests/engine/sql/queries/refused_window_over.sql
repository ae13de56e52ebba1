SELECT tumble(interval '1 hour') AS window, sum(alt) OVER (ORDER BY small) FROM timed GROUP BY 1, small
-- refused 1:54: OVER (...) is not supported beside GROUP BY
