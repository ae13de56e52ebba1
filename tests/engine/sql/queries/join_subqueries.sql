CREATE VIEW small_ones AS SELECT tumble(interval '2 days') AS window, small AS k, count(*) AS n, max(alt) AS top FROM timed WHERE id % 4 < 3 GROUP BY window, small;
CREATE VIEW good_ones AS SELECT tumble(interval '2 days') AS window, small + 1 AS k, count(*) AS n FROM timed WHERE ok GROUP BY window, 2;
SELECT x.window.end AS e, x.n, y.n AS m FROM (SELECT window, sum(n) AS n FROM small_ones GROUP BY window) x JOIN (SELECT window, n, k FROM good_ones WHERE k > 1) y ON x.window = y.window
-- result rows (e, n, m)
-- ["2013-01-03 00:00:00", 6, 1]
-- ["2013-01-03 00:00:00", 6, 1]
-- ["2013-01-05 00:00:00", 5, 1]
-- ["2013-01-05 00:00:00", 5, 1]
-- ["2013-01-07 00:00:00", 5, 1]
-- ["2013-01-07 00:00:00", 5, 2]
-- ["2013-01-09 00:00:00", 2, 1]
