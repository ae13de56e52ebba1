SELECT a.id FROM timed a JOIN (SELECT id, small FROM timed) b ON a.small = b.small;
-- refused 1:66: this join would have to remember all rows for ever, because b has no event time here: write WATERMARK FOR column in CREATE TABLE, select the column, and join ON ... AND b.at BETWEEN a.at - INTERVAL '1 hour' AND a.at; or join results of the same windows, or a lookup table
