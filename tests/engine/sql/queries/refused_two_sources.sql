CREATE TABLE i WITH (connector = 'impulse');
INSERT INTO out SELECT id FROM flights;
INSERT INTO out2 SELECT counter FROM i
-- refused 3:38: a second table is read, i beside flights: write two files, one for each
