CREATE TABLE k WITH (connector = 'filesystem', path = 'k', format = 'parquet', type = 'sink',
                     'parquet.row_group_bytes' = '1000');
INSERT INTO k SELECT id FROM flights
-- refused 2:22: parquet.row_group_bytes: write parquet.row_group_size, a number of rows
