SELECT a.id FROM timed a JOIN timed b ON a.small = b.small AND b.day > a.day - INTERVAL '1 hour';
-- refused 1:42: this join has one bound alone, and would have to remember rows for ever: add AND b.day <= a.day + INTERVAL '1 hour'
