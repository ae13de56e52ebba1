SELECT id FROM flihgts
-- refused 1:16: there is no table flihgts: write 'flights'
