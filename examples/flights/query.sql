-- Planes that start at JFK: arroyo-udf run query.sql --udf udf.c --udf stream.py --checkpoints state
CREATE TABLE flights (
  time_hour TIMESTAMP(0) WITH TIME ZONE,
  carrier TEXT,
  flight TEXT,
  origin TEXT,
  dest TEXT,
  tailnum TEXT,
  distance BIGINT,
  air_time BIGINT,
  WATERMARK FOR time_hour AS time_hour - INTERVAL '1 hour'
) WITH (connector = 'filesystem', path = '${FLIGHTS}', format = 'csv', type = 'source');

CREATE TABLE planes WITH (connector = 'filesystem', path = '${OUT}', format = 'parquet', type = 'sink');

INSERT INTO planes
SELECT time_hour, carrier, flight, origin,
       route(origin, dest) AS route,
       CASE WHEN air_time > 0 THEN mph(distance, air_time) END AS speed,
       coalesce(plane(carrier, tailnum), 'unknown') AS plane
FROM flights
WHERE route(origin, dest) LIKE 'JFK to%' AND carrier <> 'AA';
