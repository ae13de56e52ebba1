SELECT a.id FROM timed a JOIN timed b
ON b.day BETWEEN a.day AND a.day + INTERVAL '1 day' AND a.tail > b.smal;
-- refused 2:66: b has no column smal: write 'small'
