SELECT id FROM timed UNION ALL SELECT count(*) FROM timed GROUP BY tumble(interval '1 day')
-- refused 1:1: operators[5]: some of its rows are results of windows, and others are not: group all of them, or none
