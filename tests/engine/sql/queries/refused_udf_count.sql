SELECT id,
       twice(id, 2) FROM flights
-- refused 2:8: 2 arguments are given, and the function is twice(n: int64) -> int64
