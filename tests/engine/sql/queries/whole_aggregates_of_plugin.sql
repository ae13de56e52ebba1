INSERT INTO out
SELECT small, total(alt) AS t, sum(alt) AS s, total(alt) FILTER (WHERE ok) AS f, round(weighted(speed, small), 3) AS x,
       total(DISTINCT alt / 10) AS d, total(alt ORDER BY id DESC) AS o, nulls(tail) AS n, twice(total(alt)) AS z
FROM flights GROUP BY small HAVING total(positive(abs(alt))) > 10;
-- reference INSERT INTO out SELECT small, sum(alt) AS t, sum(alt) AS s, sum(alt) FILTER (WHERE ok) AS f, round(sum(speed * small) / nullif(sum(small), 0), 3) AS x, sum(DISTINCT alt / 10) AS d, sum(alt) AS o, count(*) - count(tail) AS n, twice(sum(alt)) AS z FROM flights GROUP BY small HAVING sum(abs(alt)) > 10;
-- result out (small, t, s, f, x, d, o, n, z)
-- [0, 185, 185, 122, null, 16, 185, 1, 370]
-- [1, 153, 153, 36, 143.75, 12, 153, 1, 306]
-- [2, 232, 232, 90, 156.25, 17, 232, 1, 464]
