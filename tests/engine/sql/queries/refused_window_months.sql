SELECT count(*) FROM timed GROUP BY tumble(interval '1 month')
-- refused 1:44: months have no length: write days
