SELECT a.id FROM timed a JOIN timed b ON b.day BETWEEN a.day AND a.day + INTERVAL '1 month';
-- refused 1:74: months have no length: write days
