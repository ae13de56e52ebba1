SELECT id FROM flights WHERE tail IS JSON
-- refused 1:38: write [NOT] NULL | TRUE | FALSE | DISTINCT | [form] NORMALIZED FROM after IS here, not JSON
