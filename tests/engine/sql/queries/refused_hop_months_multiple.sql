SELECT hop(interval '2 months', interval '3 months') AS w, count(*) AS n FROM timed GROUP BY w
-- refused 1:8: the width of a window must be a multiple of its slide: write one that is
