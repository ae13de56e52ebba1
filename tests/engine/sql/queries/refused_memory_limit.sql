SET memory_limit = 'much'; SELECT id FROM flights
-- refused 1:5: memory_limit = 'much': write a size above 0, such as '512MiB' or '2GB'
