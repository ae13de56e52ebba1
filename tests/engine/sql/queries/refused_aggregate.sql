INSERT INTO out SELECT count(*) FROM flights
-- refused 1:17: this query has no window, so its results are updated with each row, and out takes rows that stay: add tumble(interval '1 minute') to GROUP BY, or write format = 'debezium_json' for the table
