CREATE VIEW v AS SELECT id FROM w; CREATE VIEW w AS SELECT id FROM v; SELECT id FROM v; SELECT id FROM w
-- refused 1:68: v selects from w selects from v: name another table
