SELECT * EXCEPT (id, tags, pos), id AS id, plane(tail) AS tail2 FROM flights AS f WHERE f.id < 6
-- result rows (tail, alt, speed, ok, day, cents, small, id, tail2)
-- ["B02", 64, 25.0, true, "2013-01-01 14:00:00", "2.50", 2, 2, "P-B02"]
-- ["B05", -5, 62.5, null, "2013-01-02 11:00:00", "6.25", 2, 5, "P-B05"]
-- ["D01", 27, 12.5, false, "2013-01-01 07:00:00", "1.25", 1, 1, "P-D01"]
-- ["D04", null, 50.0, true, "2013-01-02 04:00:00", "5.00", 1, 4, "P-D04"]
-- ["N00", -10, 0.0, true, "2013-01-01 00:00:00", "0.00", 0, 0, "P-N00"]
-- [null, 11, 37.5, false, "2013-01-01 21:00:00", "3.75", 0, 3, null]
