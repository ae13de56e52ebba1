VALUES (1, 2)
-- refused 1:1: there is no VALUES: rows come from a table. Write a file, and a table that reads it
