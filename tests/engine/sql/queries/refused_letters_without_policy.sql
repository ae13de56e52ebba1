SET dead_letters = 'dead';
SELECT id FROM flights
-- refused 1:5: nothing sends rows here: write SET on_error = 'dead_letter'
