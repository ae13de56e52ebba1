-- Payments of each second, by risk. The payments are made up; `risk` takes five milliseconds for each of them.
CREATE TABLE payments (counter BIGINT, event_time TIMESTAMP(9), WATERMARK FOR event_time) WITH (
  connector = 'impulse', event_rate = '1000', message_count = '30000', event_time_interval = '1 ms',
  start = '2026-01-01T00:00:00Z', partitions = '8');

CREATE TABLE risks (second TIMESTAMP, risk TEXT, payments BIGINT, first BIGINT, last BIGINT) WITH (
  connector = 'filesystem', path = '${OUT}', format = 'json', type = 'sink');

CREATE VIEW judged AS SELECT counter, event_time, risk(counter) AS risk FROM payments;

INSERT INTO risks SELECT window.start, risk, payments, first, last FROM (
  SELECT tumble(interval '1 second') AS window, risk, count(*) AS payments, min(counter) AS first, max(counter) AS last
  FROM judged GROUP BY window, risk);
