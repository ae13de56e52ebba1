SELECT id, FROM flights
-- refused 1:10: this comma has no expression behind it: write one, or leave the comma out
