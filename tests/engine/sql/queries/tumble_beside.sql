INSERT INTO out SELECT plane(tail) AS p, id FROM timed WHERE id > 20;
INSERT INTO out2 SELECT tail, tumble(interval '1 day') AS w, count(*) AS n FROM timed GROUP BY tail, w HAVING tail LIKE 'N%';
-- result out (p, id)
-- ["P-B23", 23]
-- ["P-D22", 22]
-- ["P-N21", 21]
-- result out2 (tail, w, n)
-- ["N00", {"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 1]
-- ["N06", {"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 1]
-- ["N09", {"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 1]
-- ["N12", {"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 1]
-- ["N15", {"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 1]
-- ["N18", {"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 1]
-- ["N21", {"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 1]
