SELECT sun(id) AS s FROM timed GROUP BY tumble(interval '1 hour')
-- refused 1:8: there is no function sun: write 'sum'
