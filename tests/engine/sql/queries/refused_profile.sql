CREATE TABLE k WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source', connection_profile = 'mine');
SELECT * FROM k
-- refused 1:103: connection_profile: there are no connection profiles here: write their options
