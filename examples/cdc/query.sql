-- Customers, as they change, to another table that is kept in step, each change once:
-- arroyo-udf run query.sql --udf functions.py --checkpoints state
CREATE TABLE customers (
  id BIGINT,
  name TEXT,
  phone TEXT,
  op TEXT METADATA FROM 'op'
) WITH (
  connector = 'postgresql_cdc',
  type = 'source',
  uri = '${SHOP}',
  table = 'public.customers',
  slot = 'customers_for_search'
);

CREATE TABLE found_by (
  id BIGINT PRIMARY KEY,
  name TEXT,
  digits TEXT,
  op TEXT
) WITH (
  connector = 'postgres',
  type = 'sink',
  uri = '${SEARCH}',
  operation = 'op'
);

INSERT INTO found_by SELECT id, name, digits(phone) AS digits, op FROM customers;
