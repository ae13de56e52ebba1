SELECT tumble(interval '1 hour') AS window FROM timed GROUP BY ROLLUP (small), 1
-- refused 1:64: GROUP BY ROLLUP is not supported: write the columns
