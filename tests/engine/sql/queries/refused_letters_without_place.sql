SET on_error = 'dead_letter';
SELECT id FROM flights
-- refused 1:5: dead letters need a place: write SET dead_letters = 'folder'
