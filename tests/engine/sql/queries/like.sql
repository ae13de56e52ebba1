SELECT tail FROM flights WHERE tail LIKE 'N%' OR tail ~ '^D.5'
-- result rows (tail)
-- ["N00"]
-- ["N06"]
-- ["N09"]
-- ["N12"]
-- ["N15"]
-- ["N18"]
-- ["N21"]
