CREATE VIEW hours AS SELECT small, tumble(interval '12 hours') AS window, count(*) AS n FROM timed GROUP BY 1, 2;
SELECT tumble(interval '2 days') AS window, count(*) AS hours, sum(n) AS n, max(n) AS most FROM hours GROUP BY 1;
INSERT INTO out SELECT window.start AS start, n FROM hours WHERE n > 1;
-- reference CREATE VIEW hours AS SELECT small, date_bin(interval '12 hours', day) AS day, count(*) AS n FROM timed GROUP BY 1, 2;
-- reference SELECT named_struct('start', date_bin(interval '2 days', day), 'end', date_bin(interval '2 days', day) + interval '2 days') AS window, count(*) AS hours, sum(n) AS n, max(n) AS most FROM hours GROUP BY 1;
-- reference INSERT INTO out SELECT day AS start, n FROM hours WHERE n > 1;
-- result rows (window, hours, n, most)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-03 00:00:00"}, 7, 7, 1]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-05 00:00:00"}, 7, 7, 1]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-07 00:00:00"}, 7, 7, 1]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-09 00:00:00"}, 3, 3, 1]
-- result out (start, n)
