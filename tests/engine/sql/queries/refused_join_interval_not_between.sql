SELECT a.id FROM timed a JOIN timed b ON b.day NOT BETWEEN a.day AND a.day + INTERVAL '1 hour';
-- refused 1:42: this join would have to remember all rows for ever: write ON ... AND b.day BETWEEN a.day - INTERVAL '1 hour' AND a.day + INTERVAL '1 hour'
