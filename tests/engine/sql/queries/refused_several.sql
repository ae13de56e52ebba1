SELECT nothing FROM flights;
SELECT id FROM nowhere;
SELECT twice(tail) FROM flights
-- refused 1:8: there is no column nothing: there are id, tail, alt, speed, ok, day, tags, pos, cents, small
-- 2:16: there is no table nowhere: there are flights, timed, planes, out, out2
-- 3:14: tail is string, and the function is twice(n: int64) -> int64: write CAST(... AS ...) for n
