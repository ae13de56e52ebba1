SELECT tumble(interval '1 hour') AS window, sum(altt) AS s FROM timed GROUP BY 1
-- refused 1:49: there is no column altt: write 'alt'
