CREATE TABLE k (a INT) WITH (connector = 'stdin', format = 'json', bad_data = 'ignore'); SELECT a FROM k
-- refused 1:68: bad_data = 'ignore' is not known: there are fail, drop, dead_letter
