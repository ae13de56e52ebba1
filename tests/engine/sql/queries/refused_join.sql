SELECT a.id FROM flights a JOIN flights b ON a.id = b.id
-- refused 1:46: this join would have to remember all rows for ever, because a has no event time here: write WATERMARK FOR column in CREATE TABLE, select the column, and join ON ... AND b.at BETWEEN a.at - INTERVAL '1 hour' AND a.at; or join results of the same windows, or a lookup table
