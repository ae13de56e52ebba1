CREATE MATERIALIZED VIEW v AS SELECT id FROM flights; SELECT id FROM v
-- refused 1:8: there is no CREATE MATERIALIZED VIEW: write CREATE VIEW; its rows are computed once, whoever selects from it
