SELECT * FROM flights, letters(tail) AS l (alt, place)
-- refused 1:8: there are two columns alt: write AS and another name
