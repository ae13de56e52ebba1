SELECT a.id FROM flights a JOIN flights b ON a.small = b.tail
-- refused 1:46: this is int32, and the other side is string: write CAST(... AS ...)
