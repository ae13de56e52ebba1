SELECT tumble(interval '1 hour') AS window, sum(tail) AS s FROM timed GROUP BY 1
-- refused 1:45: there is no sum(Utf8): write CAST(... AS ...) for an argument
