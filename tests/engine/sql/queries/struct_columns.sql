CREATE TABLE t (pos STRUCT<lat DOUBLE, lon DOUBLE> NOT NULL, deep STRUCT<c STRUCT<d BIGINT>>, tags TEXT[])
WITH (connector = 'blackhole');
INSERT INTO t SELECT pos, {'c': {'d': id}}, tags FROM flights WHERE id < 4
-- result t (pos, deep, tags)
-- [{"lat": 0.0, "lon": 0.0}, {"c": {"d": 0}}, []]
-- [{"lat": 0.25, "lon": -0.125}, {"c": {"d": 1}}, ["a"]]
-- [{"lat": 0.5, "lon": -0.25}, {"c": {"d": 2}}, ["a", "b"]]
-- [{"lat": 0.75, "lon": -0.375}, {"c": {"d": 3}}, ["a", "b", "c"]]
