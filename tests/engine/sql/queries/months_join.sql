CREATE TABLE spread (id BIGINT, tail TEXT, alt BIGINT, small INT, day TIMESTAMP(6), at TIMESTAMP(6) GENERATED ALWAYS AS (arrow_cast(arrow_cast(day, 'Int64') + id * 1555200000000, 'Timestamp(Microsecond, None)')), WATERMARK FOR at AS at - INTERVAL '1 day') WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
CREATE VIEW big AS SELECT small, tumble(interval '3 months') AS window, count(*) AS n FROM spread WHERE alt > 30 GROUP BY 1, 2;
CREATE VIEW every AS SELECT small, tumble(interval '3 months') AS window, count(*) AS n FROM spread GROUP BY 1, 2;
SELECT window.start AS s, small, e.n, b.n AS big, add(e.n, 1) AS m FROM every e LEFT JOIN big b USING (window, small);
-- reference CREATE VIEW spread AS SELECT *, arrow_cast(arrow_cast(day, 'Int64') + id * 1555200000000, 'Timestamp(Microsecond, None)') AS at FROM timed;
-- reference CREATE VIEW big AS SELECT small, named_struct('start', date_bin(interval '3 months', at), 'end', date_bin(interval '3 months', at) + interval '3 months') AS window, count(*) AS n FROM spread WHERE alt > 30 GROUP BY 1, 2;
-- reference CREATE VIEW every AS SELECT small, named_struct('start', date_bin(interval '3 months', at), 'end', date_bin(interval '3 months', at) + interval '3 months') AS window, count(*) AS n FROM spread GROUP BY 1, 2;
-- reference SELECT e.window['start'] AS s, e.small, e.n, b.n AS big, add(e.n, 1) AS m FROM every e LEFT JOIN big b ON e.window = b.window AND e.small = b.small;
-- result rows (s, small, n, big, m)
-- ["2013-01-01 00:00:00", 0, 2, null, 3]
-- ["2013-01-01 00:00:00", 1, 2, null, 3]
-- ["2013-01-01 00:00:00", 2, 1, 1, 2]
-- ["2013-04-01 00:00:00", 0, 2, 1, 3]
-- ["2013-04-01 00:00:00", 1, 1, 1, 2]
-- ["2013-04-01 00:00:00", 2, 2, null, 3]
-- ["2013-07-01 00:00:00", 0, 1, 1, 2]
-- ["2013-07-01 00:00:00", 1, 2, null, 3]
-- ["2013-07-01 00:00:00", 2, 2, 1, 3]
-- ["2013-10-01 00:00:00", 0, 2, null, 3]
-- ["2013-10-01 00:00:00", 1, 2, 1, 3]
-- ["2013-10-01 00:00:00", 2, 1, 1, 2]
-- ["2014-01-01 00:00:00", 0, 1, 1, 2]
-- ["2014-01-01 00:00:00", 1, 1, null, 2]
-- ["2014-01-01 00:00:00", 2, 2, 1, 3]
