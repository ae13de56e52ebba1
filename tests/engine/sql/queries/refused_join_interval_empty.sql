SELECT a.id FROM timed a JOIN timed b ON b.day BETWEEN a.day AND a.day - INTERVAL '1 hour';
-- refused 1:42: no rows can meet: the first bound of this interval is above the second one
