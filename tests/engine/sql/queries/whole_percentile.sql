SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY speed) AS p FROM flights WHERE id < 4
-- result rows (p)
-- [33.75]
