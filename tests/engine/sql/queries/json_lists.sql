CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT id, json_get_array(doc, 'n') AS items, json_object_keys(doc) AS names, json_keys(doc, 'n') AS none, unnest(json_get_array(doc, 'n')) AS item FROM docs WHERE id < 4
-- result rows (id, items, names, none, item)
-- [0, ["0", "0", "0.0"], ["tail", "n", "pos"], null, "0"]
-- [0, ["0", "0", "0.0"], ["tail", "n", "pos"], null, "0"]
-- [0, ["0", "0", "0.0"], ["tail", "n", "pos"], null, "0.0"]
-- [1, ["1", "1", "12.5"], ["tail", "n", "pos"], null, "1"]
-- [1, ["1", "1", "12.5"], ["tail", "n", "pos"], null, "1"]
-- [1, ["1", "1", "12.5"], ["tail", "n", "pos"], null, "12.5"]
-- [2, ["2", "2", "25.0"], ["tail", "n", "pos"], null, "2"]
-- [2, ["2", "2", "25.0"], ["tail", "n", "pos"], null, "2"]
-- [2, ["2", "2", "25.0"], ["tail", "n", "pos"], null, "25.0"]
-- [3, ["3", "0", "37.5"], ["tail", "n", "pos"], null, "0"]
-- [3, ["3", "0", "37.5"], ["tail", "n", "pos"], null, "3"]
-- [3, ["3", "0", "37.5"], ["tail", "n", "pos"], null, "37.5"]
