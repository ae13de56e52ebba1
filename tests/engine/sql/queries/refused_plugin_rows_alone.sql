SELECT letter FROM letters('a')
-- refused 1:20: letters(...) is no table: write a table's name, or a query in brackets
