SELECT twice(tail) FROM flights
-- refused 1:14: tail is string, and the function is twice(n: int64) -> int64: write CAST(... AS ...) for n
