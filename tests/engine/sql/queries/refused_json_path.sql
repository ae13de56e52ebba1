SELECT id, extract_json(tail, '$.a[?@.b]') AS x FROM flights
-- refused 1:31: the path "$.a[?@.b]" is not supported at its character 4: write .name, ['name'], [0], [-1], [*] or .*: filters, slices and lists are not supported
