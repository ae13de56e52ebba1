-- How late Boeing's planes were, by day and carrier, and who was responsible for the latest one. The flights come in the
-- order of their hours; `plane` looks up planes in SQLite, `user_name` looks up users in PostgreSQL:
-- arroyo-udf run delays.sql --udf udf.py --udf ../user_name/batched.py --checkpoints state
CREATE TABLE flights (
  time_hour TIMESTAMP(0) WITH TIME ZONE,
  carrier TEXT,
  flight BIGINT,
  tailnum TEXT,
  dep_delay BIGINT,
  WATERMARK FOR time_hour AS time_hour - INTERVAL '1 hour'
) WITH (connector = 'filesystem', path = '${FLIGHTS}', format = 'csv', type = 'source');

CREATE TABLE delays (
  day TIMESTAMP(6),
  carrier TEXT,
  flights BIGINT,
  delay DOUBLE,
  latest BIGINT,
  responsible TEXT,
  PRIMARY KEY (day, carrier)
) WITH (connector = 'postgres', uri = '${USERS_DB}');

CREATE VIEW days AS
SELECT carrier, tumble(interval '1 day') AS window, count(*) AS flights, avg(dep_delay) AS delay,
       first_value(flight ORDER BY dep_delay DESC, flight) AS latest
FROM flights
WHERE dep_delay IS NOT NULL AND plane(tailnum) LIKE 'BOEING%'
GROUP BY carrier, window;

INSERT INTO delays
SELECT window.start, carrier, flights, delay, latest, user_name(latest) FROM days;
