INSERT INTO out
SELECT n, count(*) FROM (SELECT tumble(interval '1 day') AS w, count(*) AS n FROM timed GROUP BY 1) GROUP BY n
-- refused 2:110: this query has no window, so its results are updated with each row, and out takes rows that stay: add tumble(interval '1 minute') to GROUP BY, or write format = 'debezium_json' for the table
