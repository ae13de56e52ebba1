CREATE VIEW a AS SELECT id, twice(id) AS t FROM flights;
CREATE VIEW b AS SELECT t + 1 AS u, id FROM a WHERE t > 8;
SELECT add(u, id) AS s FROM b;
-- result rows (s)
-- [16]
-- [19]
-- [22]
-- [25]
-- [28]
-- [31]
-- [34]
-- [37]
-- [40]
-- [43]
-- [46]
-- [49]
-- [52]
-- [55]
-- [58]
-- [61]
-- [64]
-- [67]
-- [70]
