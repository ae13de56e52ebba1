SELECT id, a.maker, b.maker AS other, b.tail
FROM flights f JOIN planes a ON f.tail = a.tail LEFT JOIN planes b ON b.seats = a.small + 1;
-- result rows (id, maker, other, tail)
-- [0, "Airbus", "Airbus", "X99"]
-- [1, "Boeing", "none", null]
-- [13, "boeing", null, null]
-- [14, "", null, null]
-- [18, "Airbus", "Airbus", "X99"]
-- [6, null, "Airbus", "X99"]
-- [9, "Airbus", "Airbus", "X99"]
-- [9, "Cessna", "none", null]
