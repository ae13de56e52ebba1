CREATE TEMPORARY TABLE p (at TIMESTAMP, WATERMARK FOR at) WITH (connector = 'sqlite', uri = 'sqlite:planes.db');
SELECT id FROM flights f JOIN p ON f.day = p.at;
-- refused 1:55: what is looked up has no event time: leave WATERMARK FOR out
