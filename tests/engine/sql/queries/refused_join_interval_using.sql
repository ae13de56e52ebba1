SELECT a.id FROM timed a JOIN timed b USING (small);
-- refused 1:26: this join would have to remember all rows for ever: write ON ... AND b.day BETWEEN a.day - INTERVAL '1 hour' AND a.day + INTERVAL '1 hour'
