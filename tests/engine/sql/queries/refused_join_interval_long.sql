SELECT a.id FROM timed a JOIN timed b ON b.day BETWEEN a.day AND a.day + INTERVAL '20000 days';
-- refused 1:42: an interval is no longer than 11574 days: write a shorter one
