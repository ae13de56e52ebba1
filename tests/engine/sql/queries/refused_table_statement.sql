TABLE flights
-- refused 1:1: there is no TABLE: write SELECT * FROM the table
