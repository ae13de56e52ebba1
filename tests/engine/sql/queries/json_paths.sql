CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT get_first_json_object(doc, '$.pos') AS a, extract_json(doc, '$.n[*]') AS b, extract_json_string(doc, '$.tail') AS c, extract_json(doc, '$.nothing') AS d, get_first_json_object(doc, '$.n[-1]') AS e FROM docs WHERE id < 5
-- result rows (a, b, c, d, e)
-- ["{\"lat\":0.0,\"ok\":true}", ["0", "0", "0.0"], "N00", [], "0.0"]
-- ["{\"lat\":0.25,\"ok\":false}", ["1", "1", "12.5"], "D01", [], "12.5"]
-- ["{\"lat\":0.5,\"ok\":true}", ["2", "2", "25.0"], "B02", [], "25.0"]
-- ["{\"lat\":0.75,\"ok\":false}", ["3", "0", "37.5"], null, [], "37.5"]
-- ["{\"lat\":1.0,\"ok\":true}", ["4", "1", "50.0"], "D04", [], "50.0"]
