CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT id, plane(doc ->> 'tail') AS p, twice(json_get_int(doc, 'n', 0)) AS t FROM docs WHERE is_plane(doc ->> 'tail')
-- result rows (id, p, t)
-- [0, "P-N00", 0]
-- [12, "P-N12", 24]
-- [15, "P-N15", 30]
-- [18, "P-N18", 36]
-- [21, "P-N21", 42]
-- [6, "P-N06", 12]
-- [9, "P-N09", 18]
