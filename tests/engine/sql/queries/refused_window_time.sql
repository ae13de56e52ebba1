SELECT tumble(interval '1 hour') AS window, count(*) FROM flights GROUP BY 1
-- refused 1:8: windows need an event time: write WATERMARK FOR column in the CREATE TABLE
