SET on_late = 'fail'; SET allowed_lateness = '-5 minutes'; SELECT count(*) AS n FROM timed GROUP BY tumble(interval '1 day')
-- refused 1:5: on_late = 'fail': there are drop, dead_letter
-- 1:27: allowed_lateness = '-5 minutes': write a time above 0, such as '10 minutes'
