SET on_late = 'dead_letter'; SELECT count(*) AS n FROM timed GROUP BY tumble(interval '1 day')
-- refused 1:5: dead letters need a place: write SET dead_letters = 'folder'
