CREATE TABLE mem (a BIGINT);
SELECT a FROM mem
-- refused 2:15: nothing is inserted into mem: write INSERT INTO mem SELECT ... before
