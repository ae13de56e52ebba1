SELECT a.id, b.id AS other, c.id AS third FROM timed a
LEFT JOIN timed b ON a.small = b.small AND b.day BETWEEN a.day - INTERVAL '22 hours' AND a.day - INTERVAL '1 hour'
JOIN timed c ON c.tail > a.tail AND c.day BETWEEN a.day AND a.day + INTERVAL '14 hours' AND c.day <= b.day + INTERVAL '2 days';
-- result rows (id, other, third)
-- [11, 8, 12]
-- [11, 8, 13]
-- [13, 10, 15]
-- [14, 11, 15]
-- [14, 11, 16]
-- [16, 13, 18]
-- [19, 16, 21]
-- [20, 17, 21]
-- [20, 17, 22]
-- [4, 1, 6]
-- [5, 2, 6]
-- [5, 2, 7]
-- [7, 4, 9]
-- [8, 5, 9]
