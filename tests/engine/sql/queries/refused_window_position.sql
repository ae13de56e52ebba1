SELECT tumble(interval '1 hour') AS window FROM timed GROUP BY 2
-- refused 1:64: GROUP BY 2: the SELECT has 1 columns
