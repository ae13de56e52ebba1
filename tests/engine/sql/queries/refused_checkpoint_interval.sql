SET checkpoint_interval = '5 months'; SET checkpoint_rows = 1.5; SELECT id FROM flights
-- refused 1:5: checkpoint_interval = '5 months': write a time above 0, such as '10 seconds' or '500ms'
-- 1:43: checkpoint_rows = '1.5': write a whole number above 0
