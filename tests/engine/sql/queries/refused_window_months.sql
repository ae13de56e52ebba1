SELECT count(*) FROM timed GROUP BY tumble(interval '1 month 3 days')
-- refused 1:44: months differ in length: write an interval of months alone, or of days and less
