-- A key of two columns, and an equation of columns of the table, which is a condition.
SELECT id, maker FROM flights f JOIN planes ON planes.tail = f.tail AND f.small = planes.small AND seats = seats;
-- result rows (id, maker)
-- [0, "Airbus"]
-- [14, ""]
-- [18, "Airbus"]
-- [6, null]
-- [9, "Airbus"]
