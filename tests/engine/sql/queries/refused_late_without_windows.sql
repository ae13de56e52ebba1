SET on_late = 'drop'; SET allowed_lateness = '5 minutes'; SELECT id FROM timed
-- refused 1:5: on_late is for windows, and no query has any: leave it out
-- 1:27: allowed_lateness is for windows, and no query has any: leave it out
