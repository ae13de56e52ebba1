INSERT INTO out
SELECT letter, tumble(interval '3 days') AS w, count(*) AS n, total(f.small) AS t
FROM timed AS f CROSS JOIN letters(f.tail) WHERE place = 1 GROUP BY letter, w;
-- reference INSERT INTO out SELECT left(tail, 1) AS letter, tumble(interval '3 days') AS w, count(*) AS n, sum(small) AS t FROM timed WHERE tail IS NOT NULL GROUP BY 1, 2;
-- result out (letter, w, n, t)
-- ["B", {"start": "2012-12-31 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 4]
-- ["B", {"start": "2013-01-03 00:00:00", "end": "2013-01-06 00:00:00"}, 3, 6]
-- ["B", {"start": "2013-01-06 00:00:00", "end": "2013-01-09 00:00:00"}, 2, 4]
-- ["D", {"start": "2012-12-31 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 2]
-- ["D", {"start": "2013-01-03 00:00:00", "end": "2013-01-06 00:00:00"}, 3, 3]
-- ["D", {"start": "2013-01-06 00:00:00", "end": "2013-01-09 00:00:00"}, 2, 2]
-- ["N", {"start": "2012-12-31 00:00:00", "end": "2013-01-03 00:00:00"}, 2, 0]
-- ["N", {"start": "2013-01-03 00:00:00", "end": "2013-01-06 00:00:00"}, 3, 0]
-- ["N", {"start": "2013-01-06 00:00:00", "end": "2013-01-09 00:00:00"}, 2, 0]
