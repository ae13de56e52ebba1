SELECT tumble(interval '1 day') AS w, total(tail) AS t FROM timed GROUP BY w
-- refused 1:45: tail is string, and the function is total(values: int64) -> int64: write CAST(... AS ...) for values
