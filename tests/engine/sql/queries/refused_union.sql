SELECT id FROM flights UNION SELECT id FROM flights
-- refused 1:24: UNION is not supported: it would have to remember all rows for ever, to leave out equal ones. Write UNION ALL
