WITH v AS (SELECT id FROM flights) INSERT INTO out SELECT id FROM v
-- refused 1:36: INSERT INTO stands before WITH: write INSERT INTO table WITH name AS (...) SELECT
