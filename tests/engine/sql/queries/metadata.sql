CREATE TABLE located (file TEXT METADATA FROM 'filename', id BIGINT, n INT NOT NULL METADATA FROM 'row')
WITH (connector = 'filesystem', path = 'flights', format = 'parquet', type = 'source');
SELECT id, file, n, twice(n) AS m FROM located WHERE n < 4
-- reference SELECT id, 'flights/' || (id / 4) || '.parquet' AS file, id % 4 + 1 AS n, 2 * (id % 4 + 1) AS m
-- reference FROM flights WHERE id % 4 < 3
-- result rows (id, file, n, m)
-- [0, "flights/0.parquet", 1, 2]
-- [1, "flights/0.parquet", 2, 4]
-- [10, "flights/2.parquet", 3, 6]
-- [12, "flights/3.parquet", 1, 2]
-- [13, "flights/3.parquet", 2, 4]
-- [14, "flights/3.parquet", 3, 6]
-- [16, "flights/4.parquet", 1, 2]
-- [17, "flights/4.parquet", 2, 4]
-- [18, "flights/4.parquet", 3, 6]
-- [2, "flights/0.parquet", 3, 6]
-- [20, "flights/5.parquet", 1, 2]
-- [21, "flights/5.parquet", 2, 4]
-- [22, "flights/5.parquet", 3, 6]
-- [4, "flights/1.parquet", 1, 2]
-- [5, "flights/1.parquet", 2, 4]
-- [6, "flights/1.parquet", 3, 6]
-- [8, "flights/2.parquet", 1, 2]
-- [9, "flights/2.parquet", 2, 4]
