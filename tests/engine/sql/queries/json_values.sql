CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT json_get(doc, 'tail') AS a, json_get_json(doc, 'tail') AS b, json_as_text(doc, 'tail') AS c, json_get(doc, 'pos') AS d, json_get_json(doc, 'nothing') AS e FROM docs WHERE id < 5
-- result rows (a, b, c, d, e)
-- ["\"B02\"", "\"B02\"", "B02", "{\"lat\":0.5,\"ok\":true}", null]
-- ["\"D01\"", "\"D01\"", "D01", "{\"lat\":0.25,\"ok\":false}", null]
-- ["\"D04\"", "\"D04\"", "D04", "{\"lat\":1.0,\"ok\":true}", null]
-- ["\"N00\"", "\"N00\"", "N00", "{\"lat\":0.0,\"ok\":true}", null]
-- [null, "null", null, "{\"lat\":0.75,\"ok\":false}", null]
