SELECT count(*) FROM timed GROUP BY hop(interval '1 day', interval '1 month')
-- refused 1:37: months differ in length: write all of them in months, as in hop(interval '1 month', interval '3 months')
