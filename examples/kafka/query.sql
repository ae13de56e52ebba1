-- Orders of a topic, with their towns, to another topic, each once:
-- arroyo-udf run query.sql --udf functions.py --checkpoints state
CREATE TABLE orders (
  number BIGINT,
  zip BIGINT
) WITH (
  connector = 'kafka',
  type = 'source',
  bootstrap_servers = '${KAFKA}',
  topic = '${ORDERS}',
  format = 'json',
  'source.offset' = 'earliest',
  'source.bounded' = 'true'
);

CREATE TABLE deliveries (
  town TEXT,
  number BIGINT
) WITH (
  connector = 'kafka',
  type = 'sink',
  bootstrap_servers = '${KAFKA}',
  topic = '${DELIVERIES}',
  format = 'json',
  'sink.key_field' = 'town'
);

INSERT INTO deliveries SELECT town(zip) AS town, number FROM orders;
