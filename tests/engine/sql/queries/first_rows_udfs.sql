SET state_ttl = '1000 days';
WITH n AS (SELECT plane(tail) AS p, id, row_number() OVER (PARTITION BY twice(small) ORDER BY day) AS rn FROM timed WHERE is_plane(tail))
SELECT label(p, id) AS l FROM n WHERE 1 = n.rn;
-- result rows (l)
-- ["P-N00/0"]
