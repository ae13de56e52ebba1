CREATE VIEW docs AS SELECT id, alt, small, tail, '{"tail":' || coalesce('"' || tail || '"', 'null') || ',"n":[' || id || ',' || small || ',' || speed || '],"pos":{"lat":' || (id / 4.0) || ',"ok":' || coalesce(ok, false) || '}}' AS doc FROM flights;
SELECT id FROM docs WHERE doc ->> 'tail' LIKE 'N%' AND doc ->> 'tail' || 'x' <> 'N00x' OR doc -> 'pos' ->> 'lat' BETWEEN '1' AND '2'
-- result rows (id)
-- [12]
-- [15]
-- [18]
-- [21]
-- [4]
-- [5]
-- [6]
-- [7]
-- [9]
