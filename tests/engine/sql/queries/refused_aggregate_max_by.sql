SELECT max_by(id, alt) AS m FROM timed GROUP BY tumble(interval '1 hour')
-- refused 1:8: there is no function max_by: write first_value(a ORDER BY b), or with DESC the last one
