SELECT small FROM flights HAVING small > 1
-- refused 1:34: HAVING needs a GROUP BY: for rows, write WHERE
