COPY flights TO 'a.csv'
-- refused 1:1: there is no COPY: create a table with connector = 'filesystem' and insert into it
