CREATE TABLE calm (id BIGINT, day TIMESTAMP(6))
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', event_time_field = 'day');
SELECT id FROM calm
-- refused 2:88: event_time_field: write WATERMARK FOR its column between the columns
