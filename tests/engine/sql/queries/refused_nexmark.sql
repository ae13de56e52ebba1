CREATE TABLE k WITH (connector = 'nexmark', event_rate = 10); SELECT * FROM k
-- refused 1:22: the connector nexmark is not supported: write connector = 'impulse', or read a file of its events
