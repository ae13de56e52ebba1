CREATE TABLE k WITH (connector = 'delta', path = 'a', type = 'sink'); INSERT INTO k SELECT id FROM flights
-- refused 1:22: the connector delta is not supported: write connector = 'filesystem' and format = 'parquet'
