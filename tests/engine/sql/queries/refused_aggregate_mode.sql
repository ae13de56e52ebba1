SELECT mode(id) AS m FROM timed GROUP BY tumble(interval '1 hour')
-- refused 1:8: there is no function mode: group by the value, count, and write row_number() OVER (PARTITION BY window ORDER BY ...)
