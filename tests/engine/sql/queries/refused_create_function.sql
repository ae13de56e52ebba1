CREATE FUNCTION f(a INT) RETURNS INT; SELECT id FROM flights
-- refused 1:8: there is no CREATE FUNCTION: write it in Python, Rust or C, and name its file with --udf
