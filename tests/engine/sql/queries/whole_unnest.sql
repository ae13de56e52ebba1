SELECT part, count(*) AS n FROM flights CROSS JOIN LATERAL (SELECT 1 AS one) x, unnest(['a', 'b']) AS u(part) GROUP BY part
-- result rows (part, n)
-- ["a", 24]
-- ["b", 24]
