SELECT wonderful(tail) FROM flights
-- refused 1:8: there is no function wonderful: write one of DataFusion's, or name the UDF's file with --udf
