CREATE VIEW counts AS SELECT tail, count(*) AS n FROM flights GROUP BY tail; INSERT INTO out SELECT * FROM counts WHERE n > 1; INSERT INTO out2 SELECT sum(n) AS n FROM counts
-- result out (tail, n)
-- [null, 3]
-- result out2 (n)
-- [24]
