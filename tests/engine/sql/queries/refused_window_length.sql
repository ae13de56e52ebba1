SELECT count(*) FROM timed GROUP BY tumble('1 hour')
-- refused 1:44: write an interval for tumble, such as interval '1 hour'
