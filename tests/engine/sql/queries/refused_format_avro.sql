CREATE TABLE k (a INT) WITH (connector = 'stdin', format = 'avro', 'avro.raw_datums' = 'true'); SELECT a FROM k
-- refused 1:51: format = 'avro': it is one of messages (Kafka): write json, raw_string, csv, tsv, parquet or arrow
