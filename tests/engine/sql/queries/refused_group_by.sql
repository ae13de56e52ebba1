INSERT INTO out SELECT small, count(*) FROM flights GROUP BY small
-- refused 1:62: this query has no window, so its results are updated with each row, and out takes rows that stay: add tumble(interval '1 minute') to GROUP BY, or write format = 'debezium_json' for the table
