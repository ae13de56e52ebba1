SELECT id, $$a;b'c$$ AS x, $q$ $$ $q$ || tail AS y FROM flights WHERE id < 2;
-- result rows (id, x, y)
-- [0, "a;b'c", " $$ N00"]
-- [1, "a;b'c", " $$ D01"]
