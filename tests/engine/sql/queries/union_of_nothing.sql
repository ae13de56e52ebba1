SELECT tumble(interval '4 days') AS window, count(*) AS n, sum(x) AS s FROM (
    SELECT day, NULL AS x FROM timed WHERE id < 9 UNION ALL SELECT day, alt FROM timed)
GROUP BY window
-- reference SELECT tumble(interval '4 days') AS window, count(*) AS n, sum(x) AS s FROM (
-- reference SELECT day, CAST(NULL AS BIGINT) AS x FROM timed WHERE id < 9 UNION ALL SELECT day, alt FROM timed)
-- reference GROUP BY window
-- result rows (window, n, s)
-- [{"start": "2012-12-30 00:00:00", "end": "2013-01-03 00:00:00"}, 14, 119]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-07 00:00:00"}, 16, 379]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-11 00:00:00"}, 3, 72]
