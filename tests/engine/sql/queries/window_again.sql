CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, plane(max(tail)) AS p FROM timed GROUP BY 1, 2;
CREATE VIEW same AS SELECT d.window AS w, n + 1 AS m, p FROM days AS d WHERE n > 1;
SELECT w, max(m) AS most, string_agg(p, ' ' ORDER BY p) AS planes FROM same GROUP BY w;
INSERT INTO out SELECT s.w.start AS s, n FROM (SELECT w, count(*) AS n FROM same GROUP BY w) AS s WHERE twice(n) > 1;
-- reference CREATE VIEW days AS SELECT small, tumble(interval '1 day') AS window, count(*) AS n, plane(max(tail)) AS p FROM timed GROUP BY 1, 2;
-- reference CREATE VIEW same AS SELECT d.window AS w, n + 1 AS m, p FROM days AS d WHERE n > 1;
-- reference SELECT w, max(m) AS most, string_agg(p, ' ' ORDER BY p) AS planes FROM same GROUP BY w;
-- reference INSERT INTO out SELECT s.w['start'] AS s, n FROM (SELECT w, count(*) AS n FROM same GROUP BY w) AS s;
-- result rows (w, most, planes)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 3, "P-N00"]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 3, "P-D07"]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 3, "P-B14"]
-- result out (s, n)
-- ["2013-01-01 00:00:00", 1]
-- ["2013-01-03 00:00:00", 1]
-- ["2013-01-05 00:00:00", 1]
