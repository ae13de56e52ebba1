CREATE VIEW later AS SELECT id, plane(tail) AS p, day, small FROM timed WHERE is_plane(tail);
SELECT a.id, label(p, a.id) AS l FROM timed a JOIN later b ON a.small = b.small AND b.day BETWEEN a.day AND a.day + INTERVAL '30 hours'
WHERE is_big(a.alt) AND b.id > 3;
-- result rows (id, l)
-- [12, "P-N12/12"]
-- [12, "P-N15/12"]
