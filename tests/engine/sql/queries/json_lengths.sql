CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT json_length(doc) AS a, json_len(doc, 'n') AS b, json_length(doc, 'tail') AS c, json_contains(doc, 'pos', 'lat') AS d, doc ? 'tail' AS e, doc -> 'pos' ? 'tail' AS f FROM docs WHERE id < 3
-- result rows (a, b, c, d, e, f)
-- [3, 3, null, true, true, false]
-- [3, 3, null, true, true, false]
-- [3, 3, null, true, true, false]
