DROP TABLE flights
-- refused 1:1: there is no DROP: tables are only there while the file runs. Leave it out
