SELECT tumble(interval '1 day') AS window, count(*) AS n, sum(b_alt) AS s
FROM (SELECT greatest(a.day, coalesce(b.day, a.day)) AS day, b.alt AS b_alt
      FROM timed a LEFT JOIN timed b ON a.small = b.small AND b.day BETWEEN a.day + INTERVAL '1 hour' AND a.day + INTERVAL '1 day')
GROUP BY window;
-- result rows (window, n, s)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 1, 11]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 3, 27]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 4, 85]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 3, 132]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 4, 126]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 3, 36]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 6, 72]
