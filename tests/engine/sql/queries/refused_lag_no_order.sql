SET state_ttl = '1 day';
SELECT lag(id) OVER (ORDER BY id) AS x FROM timed
-- refused 2:16: rows come in the order of their event time: write OVER (... ORDER BY day)
