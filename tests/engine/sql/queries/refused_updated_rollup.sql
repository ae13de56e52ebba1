SELECT small, count(*) AS n FROM flights GROUP BY ROLLUP (small)
-- refused 1:51: GROUP BY ROLLUP is not supported: write the columns
