WITH RECURSIVE q AS (SELECT 1) SELECT * FROM q
-- refused 1:16: WITH RECURSIVE is not supported: a stream has no end
