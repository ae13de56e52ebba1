SET state_ttl = '1000 days';
SELECT tumble(interval '1 day') AS window, count(*) AS n
FROM (SELECT day, small FROM timed QUALIFY row_number() OVER (PARTITION BY alt % 7, small ORDER BY day) < 2) GROUP BY window;
-- result rows (window, n)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 4]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 2]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 3]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 2]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 1]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 1]
