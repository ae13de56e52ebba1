UPDATE flights SET id = 3
-- refused 1:1: there is no UPDATE: a stream is not changed. Write INSERT INTO ... SELECT
