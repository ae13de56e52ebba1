SELECT count(DISTINCT alt) AS m FROM flights
-- refused 1:8: this aggregate would need all rows of a key for ever: write count, sum, min, max, avg, bool_and, bool_or, or an aggregate of a plugin, without DISTINCT and ORDER BY
