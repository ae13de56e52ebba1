SELEC id FROM flights
-- refused 1:1: SELEC begins no statement: write CREATE TABLE, CREATE VIEW, INSERT INTO, SELECT or SET
