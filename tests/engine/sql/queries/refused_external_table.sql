CREATE EXTERNAL TABLE e (a INT) STORED AS CSV LOCATION 'a.csv'; SELECT a FROM e
-- refused 1:8: there is no CREATE EXTERNAL TABLE: write CREATE TABLE ... WITH (connector = 'filesystem', path = '...')
