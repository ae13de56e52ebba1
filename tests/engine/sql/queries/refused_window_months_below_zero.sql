SELECT tumble(-interval '1 month') AS w, count(*) AS n FROM timed GROUP BY w
-- refused 1:15: a window needs a length: write an interval above 0
