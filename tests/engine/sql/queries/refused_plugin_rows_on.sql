SELECT id FROM flights JOIN letters(tail) ON letter = 'N'
-- refused 1:43: rows of a function belong to their row alone: write ON TRUE, and conditions in WHERE
