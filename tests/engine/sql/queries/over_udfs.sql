CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
INSERT INTO out SELECT twice(n) + rank() OVER (PARTITION BY d.window ORDER BY s NULLS LAST) AS r, sum(n) OVER (PARTITION BY window) AS all_of_them, plane(CAST(small AS TEXT)) AS p
FROM days AS d WHERE is_big(s) OR small > 0;
INSERT INTO out2 SELECT window.start AS w, max(place) AS places FROM (SELECT window, row_number() OVER (PARTITION BY window ORDER BY small) AS place FROM days) GROUP BY window;
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, sum(alt) AS s FROM timed GROUP BY 1, 2;
-- reference INSERT INTO out SELECT twice(n) + rank() OVER (PARTITION BY d.window ORDER BY s NULLS LAST) AS r, sum(n) OVER (PARTITION BY window) AS all_of_them, plane(CAST(small AS TEXT)) AS p
-- reference FROM days AS d WHERE is_big(s) OR small > 0;
-- reference INSERT INTO out2 SELECT window['start'] AS w, max(place) AS places FROM (SELECT window, row_number() OVER (PARTITION BY window ORDER BY small) AS place FROM days) GROUP BY window;
-- result out (r, all_of_them, p)
-- ["3", 2, "P-1"]
-- ["3", 2, "P-1"]
-- ["3", 2, "P-2"]
-- ["3", 2, "P-2"]
-- ["3", 3, "P-1"]
-- ["3", 3, "P-1"]
-- ["3", 3, "P-2"]
-- ["4", 2, "P-1"]
-- ["4", 2, "P-1"]
-- ["4", 2, "P-2"]
-- ["4", 2, "P-2"]
-- ["4", 3, "P-2"]
-- ["5", 3, "P-0"]
-- ["6", 3, "P-1"]
-- ["6", 3, "P-2"]
-- result out2 (w, places)
-- ["2013-01-01 00:00:00", 3]
-- ["2013-01-02 00:00:00", 3]
-- ["2013-01-03 00:00:00", 3]
-- ["2013-01-04 00:00:00", 3]
-- ["2013-01-05 00:00:00", 3]
-- ["2013-01-06 00:00:00", 3]
-- ["2013-01-07 00:00:00", 3]
