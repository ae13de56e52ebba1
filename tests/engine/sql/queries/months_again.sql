CREATE TABLE spread (id BIGINT, tail TEXT, alt BIGINT, small INT, day TIMESTAMP(6), at TIMESTAMP(6) GENERATED ALWAYS AS (arrow_cast(arrow_cast(day, 'Int64') + id * 1555200000000, 'Timestamp(Microsecond, None)')), WATERMARK FOR at AS at - INTERVAL '1 day') WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
CREATE VIEW days AS SELECT small, tumble(interval '10 days') AS window, count(*) AS n, max(alt) AS top FROM spread GROUP BY 1, 2;
CREATE VIEW months AS SELECT small, tumble(interval '1 month') AS window, sum(n) AS n, max(top) AS top FROM days GROUP BY 1, 2;
SELECT window.start AS s, small, n, row_number() OVER (PARTITION BY window ORDER BY top DESC NULLS LAST, small) AS place FROM months;
INSERT INTO out SELECT window, sum(n) AS n, max(top) AS top FROM months GROUP BY window;
-- reference CREATE VIEW spread AS SELECT *, arrow_cast(arrow_cast(day, 'Int64') + id * 1555200000000, 'Timestamp(Microsecond, None)') AS at FROM timed;
-- reference CREATE VIEW days AS SELECT small, date_bin(interval '10 days', at) + interval '10 days' - interval '1 microsecond' AS at, count(*) AS n, max(alt) AS top FROM spread GROUP BY 1, 2;
-- reference CREATE VIEW months AS SELECT small, named_struct('start', date_bin(interval '1 month', at), 'end', date_bin(interval '1 month', at) + interval '1 month') AS window, sum(n) AS n, max(top) AS top FROM days GROUP BY 1, 2;
-- reference SELECT window['start'] AS s, small, n, row_number() OVER (PARTITION BY window ORDER BY top DESC NULLS LAST, small) AS place FROM months;
-- reference INSERT INTO out SELECT window, sum(n) AS n, max(top) AS top FROM months GROUP BY window;
-- result rows (s, small, n, place)
-- ["2013-01-01 00:00:00", 0, 1, 2]
-- ["2013-01-01 00:00:00", 1, 1, 1]
-- ["2013-02-01 00:00:00", 2, 1, 1]
-- ["2013-03-01 00:00:00", 0, 1, 1]
-- ["2013-03-01 00:00:00", 1, 1, 2]
-- ["2013-04-01 00:00:00", 0, 1, 1]
-- ["2013-04-01 00:00:00", 2, 1, 2]
-- ["2013-05-01 00:00:00", 1, 1, 1]
-- ["2013-06-01 00:00:00", 0, 1, 2]
-- ["2013-06-01 00:00:00", 2, 1, 1]
-- ["2013-07-01 00:00:00", 1, 1, 2]
-- ["2013-07-01 00:00:00", 2, 1, 1]
-- ["2013-08-01 00:00:00", 0, 1, 1]
-- ["2013-09-01 00:00:00", 1, 1, 1]
-- ["2013-09-01 00:00:00", 2, 1, 2]
-- ["2013-10-01 00:00:00", 0, 1, 2]
-- ["2013-10-01 00:00:00", 1, 1, 1]
-- ["2013-11-01 00:00:00", 0, 1, 2]
-- ["2013-11-01 00:00:00", 2, 1, 1]
-- ["2013-12-01 00:00:00", 1, 1, 1]
-- ["2014-01-01 00:00:00", 0, 1, 1]
-- ["2014-01-01 00:00:00", 2, 1, 2]
-- ["2014-02-01 00:00:00", 1, 1, 2]
-- ["2014-02-01 00:00:00", 2, 1, 1]
-- result out (window, n, top)
-- [{"start": "2013-01-01 00:00:00", "end": "2013-02-01 00:00:00"}, 2, 27]
-- [{"start": "2013-02-01 00:00:00", "end": "2013-03-01 00:00:00"}, 1, 64]
-- [{"start": "2013-03-01 00:00:00", "end": "2013-04-01 00:00:00"}, 2, 11]
-- [{"start": "2013-04-01 00:00:00", "end": "2013-05-01 00:00:00"}, 2, 32]
-- [{"start": "2013-05-01 00:00:00", "end": "2013-06-01 00:00:00"}, 1, 69]
-- [{"start": "2013-06-01 00:00:00", "end": "2013-07-01 00:00:00"}, 2, 16]
-- [{"start": "2013-07-01 00:00:00", "end": "2013-08-01 00:00:00"}, 2, 37]
-- [{"start": "2013-08-01 00:00:00", "end": "2013-09-01 00:00:00"}, 1, 74]
-- [{"start": "2013-09-01 00:00:00", "end": "2013-10-01 00:00:00"}, 2, 21]
-- [{"start": "2013-10-01 00:00:00", "end": "2013-11-01 00:00:00"}, 2, 42]
-- [{"start": "2013-11-01 00:00:00", "end": "2013-12-01 00:00:00"}, 2, 79]
-- [{"start": "2013-12-01 00:00:00", "end": "2014-01-01 00:00:00"}, 1, null]
-- [{"start": "2014-01-01 00:00:00", "end": "2014-02-01 00:00:00"}, 2, 47]
-- [{"start": "2014-02-01 00:00:00", "end": "2014-03-01 00:00:00"}, 2, 31]
