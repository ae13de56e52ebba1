-- In front of windows, and behind them.
CREATE VIEW days AS
SELECT p.maker, tumble(interval '1 day') AS window, count(*) AS n, sum(p.seats * t.small) AS s
FROM timed t JOIN planes p ON t.tail = p.tail WHERE t.id < 18 GROUP BY 1, 2;
INSERT INTO out SELECT window.start AS day, d.maker, n, s, p.tail FROM days d LEFT JOIN planes p ON d.s = p.seats;
-- reference CREATE VIEW days AS SELECT p.maker, tumble(interval '1 day') AS window, count(*) AS n, sum(p.seats * t.small) AS s FROM timed t JOIN planes p ON t.tail = p.tail WHERE t.id < 18 GROUP BY 1, 2;
-- reference INSERT INTO out SELECT d.window['start'] AS day, d.maker, n, s, p.tail FROM days d LEFT JOIN planes p ON d.s = p.seats;
-- result out (day, maker, n, s, tail)
-- ["2013-01-01 00:00:00", "Airbus", 1, 0, "B14"]
-- ["2013-01-01 00:00:00", "Boeing", 1, null, null]
-- ["2013-01-02 00:00:00", null, 1, 0, "B14"]
-- ["2013-01-03 00:00:00", "Airbus", 1, 0, "B14"]
-- ["2013-01-03 00:00:00", "Cessna", 1, 0, "B14"]
-- ["2013-01-04 00:00:00", "boeing", 1, 300, "D13"]
-- ["2013-01-05 00:00:00", "", 1, 0, "B14"]
