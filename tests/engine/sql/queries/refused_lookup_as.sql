CREATE TEMPORARY TABLE p AS SELECT id FROM flights;
SELECT id FROM p;
-- refused 1:24: a TEMPORARY TABLE is in a database, and rows look others up in it: for a query, write VIEW
