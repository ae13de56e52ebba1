SELECT 1
-- refused 1:1: a SELECT needs a FROM: rows come from a table
