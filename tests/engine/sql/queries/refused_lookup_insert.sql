INSERT INTO planes SELECT tail FROM flights;
-- refused 1:13: planes is TEMPORARY, for lookups: insert into a TABLE without this word
