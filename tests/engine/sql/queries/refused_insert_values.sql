INSERT INTO out VALUES (1)
-- refused 1:17: INSERT ... VALUES is not supported: rows come from a SELECT
