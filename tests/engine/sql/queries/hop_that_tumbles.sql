SELECT hop(interval '1 day', interval '1 day') AS window, count(*) AS n FROM timed GROUP BY 1
-- reference SELECT named_struct('start', date_trunc('day', day), 'end', date_trunc('day', day) + interval '1 day') AS window, count(*) AS n FROM timed GROUP BY 1
-- result rows (window, n)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-01-02 00:00:00"}, 4]
-- [{"start": "2013-01-02 00:00:00", "end": "2013-01-03 00:00:00"}, 3]
-- [{"start": "2013-01-03 00:00:00", "end": "2013-01-04 00:00:00"}, 4]
-- [{"start": "2013-01-04 00:00:00", "end": "2013-01-05 00:00:00"}, 3]
-- [{"start": "2013-01-05 00:00:00", "end": "2013-01-06 00:00:00"}, 4]
-- [{"start": "2013-01-06 00:00:00", "end": "2013-01-07 00:00:00"}, 3]
-- [{"start": "2013-01-07 00:00:00", "end": "2013-01-08 00:00:00"}, 3]
