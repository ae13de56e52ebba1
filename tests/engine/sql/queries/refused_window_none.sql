SELECT small, count(*) FROM timed GROUP BY small
-- refused 1:44: this GROUP BY has no window, so its groups would never end: add tumble(interval '1 minute')
