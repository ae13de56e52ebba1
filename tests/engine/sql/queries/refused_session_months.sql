SELECT count(*) FROM timed GROUP BY session(interval '1 month')
-- refused 1:37: months differ in length: write days, as in session(interval '30 days')
