SELECT * FROM out
-- refused 1:15: out is a sink: select from a table with type = 'source', or from what goes into it
