CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT plane(CAST(a.k AS TEXT)) AS p, twice(a.n) + add(a.n, b.n) AS m FROM small_ones a JOIN good_ones b ON a.window = b.window WHERE is_big(add(a.n * 20, b.n)) AND a.k <> b.k
-- result rows (p, m)
-- ["P-2", 10]
-- ["P-2", 11]
