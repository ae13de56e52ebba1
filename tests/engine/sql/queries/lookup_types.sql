-- Keys of other types: a larger integer, a decimal, a float.
INSERT INTO out SELECT f.id, p.maker FROM flights f JOIN planes p ON f.id = p.seats;
INSERT INTO out2 SELECT f.id, p.maker FROM flights f JOIN planes p ON f.speed / 50 = p.share;
-- result out (id, maker)
-- [0, ""]
-- [1, "Airbus"]
-- [2, "none"]
-- [20, "Airbus"]
-- [4, "Cessna"]
-- [7, null]
-- result out2 (id, maker)
-- [0, ""]
-- [1, "Cessna"]
-- [10, "Airbus"]
-- [12, "boeing"]
-- [2, "Boeing"]
-- [4, "Airbus"]
-- [4, "Airbus"]
-- [8, "none"]
