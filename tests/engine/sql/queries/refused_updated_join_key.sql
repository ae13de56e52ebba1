CREATE VIEW v AS SELECT small, count(*) AS n, sum(id) AS s FROM flights GROUP BY small;
SELECT v.n, flights.id FROM flights JOIN v ON flights.small > v.small
-- refused 2:37: this join has no key, and would compare all rows with all for ever: write ON a.x = b.y
