SELECT p.*, f.id FROM flights f JOIN planes p ON p.tail = f.tail;
-- result rows (tail, maker, seats, share, small, id)
-- ["B14", "", 0, 0.0, 2, 14]
-- ["D01", "Boeing", null, 0.5, 1, 1]
-- ["D13", "boeing", 300, 3.0, 2, 13]
-- ["N00", "Airbus", 100, 1.0, 0, 0]
-- ["N06", null, 7, null, 0, 6]
-- ["N09", "Airbus", 20, 2.5, 0, 9]
-- ["N09", "Cessna", 4, 0.25, 1, 9]
-- ["N18", "Airbus", 50, -1.0, 0, 18]
