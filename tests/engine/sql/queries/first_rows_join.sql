SET state_ttl = '1000 days';
CREATE VIEW firsts AS SELECT id, small, day FROM timed QUALIFY row_number() OVER (PARTITION BY small, id % 3 ORDER BY day) = 1;
SELECT a.id, b.id AS other FROM firsts a JOIN timed b ON a.small = b.small AND b.day BETWEEN a.day AND a.day + INTERVAL '2 days';
-- result rows (id, other)
-- [0, 0]
-- [0, 3]
-- [0, 6]
-- [1, 1]
-- [1, 4]
-- [1, 7]
-- [2, 2]
-- [2, 5]
-- [2, 8]
