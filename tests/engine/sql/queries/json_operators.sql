CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT id, doc ->> 'tail' AS tail, doc -> 'pos' -> 'lat' AS lat, doc -> 'n' ->> 1 AS small FROM docs WHERE doc -> 'pos' ->> 'ok' = 'true'
-- result rows (id, tail, lat, small)
-- [0, "N00", "0.0", "0"]
-- [10, null, "2.5", "1"]
-- [12, "N12", "3.0", "0"]
-- [14, "B14", "3.5", "2"]
-- [16, "D16", "4.0", "1"]
-- [18, "N18", "4.5", "0"]
-- [2, "B02", "0.5", "2"]
-- [20, "B20", "5.0", "2"]
-- [22, "D22", "5.5", "1"]
-- [4, "D04", "1.0", "1"]
-- [6, "N06", "1.5", "0"]
-- [8, "B08", "2.0", "2"]
