CREATE VIEW every AS SELECT id FROM timed UNION ALL SELECT id FROM flights;
SELECT count(*) FROM every GROUP BY tumble(interval '1 day')
-- refused 2:37: windows need an event time: write WATERMARK FOR column in the CREATE TABLE
