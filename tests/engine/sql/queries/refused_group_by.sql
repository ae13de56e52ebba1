SELECT small, count(*) FROM flights GROUP BY small
-- refused 1:46: this GROUP BY has no window, so its groups would never end: add tumble(interval '1 minute')
