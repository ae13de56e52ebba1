SELECT id FROM flights, letters(tail) AS l (a)
-- refused 1:23: letters has 2 columns, letter, place: name as many
