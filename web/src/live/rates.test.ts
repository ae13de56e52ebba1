import { expect, test } from "vitest";
import type { NodeCounts, Point } from "../api/queries";
import { bound, curve, latencies, outcome, percentile, pressure, rateNow, rowsIn, untilNow } from "./rates";

function node(given: Partial<NodeCounts>): NodeCounts {
  return {
    node_id: 1,
    name: "f",
    operator: "AsyncUdf",
    rows_in: 0,
    rows_out: 0,
    bytes_in: 0,
    bytes_out: 0,
    blocked: 0,
    gauges: [],
    in_flight: 0,
    held: 0,
    held_by_order: 0,
    backing_off: 0,
    stuck: 0,
    retries: 0,
    loop_blocked: 0,
    outcomes: {},
    latency: {},
    latency_max: 0,
    lag: null,
    watermark: null,
    oldest: null,
    ...given,
  };
}

const at = (second: number, given: Partial<NodeCounts>, generation = 1): Point => ({
  at: second * 1e6,
  generation,
  nodes: [node(given)],
});

test("a rate is the difference of two counts", () => {
  const points = [at(10, { rows_in: 100 }), at(12, { rows_in: 300 })];
  expect(rateNow(points, 1, rowsIn)).toBe(100);
  expect(rateNow(points, 2, rowsIn)).toBeNull();
  expect(rateNow(points.slice(1), 1, rowsIn)).toBeNull();
});

test("counts of two generations have no rate between them", () => {
  const points = [at(10, { rows_in: 100 }), at(12, { rows_in: 20 }, 2), at(14, { rows_in: 60 }, 2)];
  expect(curve(points, 1, [rowsIn])).toEqual({ times: [12, 14], lines: [[null, 20]] });
  expect(rateNow(points, 1, rowsIn)).toBe(20);
});

test("a job that tells nothing any more does nothing", () => {
  const points = [at(10, { rows_in: 100 }), at(12, { rows_in: 300 })];
  expect(untilNow(points, 13e6)).toBe(points);
  expect(rateNow(untilNow(points, 30e6), 1, rowsIn)).toBeNull();
  expect(curve(untilNow(points, 30e6), 1, [rowsIn]).lines).toEqual([[100, 0]]);
});

test("outcomes that never happened are none", () => {
  const points = [at(10, { outcomes: { values: 5 } }), at(12, { outcomes: { values: 9, errors: 4 } })];
  expect(curve(points, 1, [outcome("values"), outcome("errors")]).lines).toEqual([[2], [2]]);
});

test("pressure is a share", () => {
  expect(pressure([at(10, { blocked: 1 }), at(12, { blocked: 2 })], 1)).toBe(0.5);
  expect(pressure([at(10, { blocked: 1 }), at(11, { blocked: 9 })], 1)).toBe(1);
});

test("buckets of latencies are those of the runtime", () => {
  expect([0, 1, 4, 5, 8].map((bucket) => Math.round(bound(bucket) * 1e9))).toEqual([0, 1024, 4096, 5120, 8192]);
});

test("latencies are those since the first point", () => {
  const buckets = latencies([at(10, { latency: { 4: 10 } }), at(12, { latency: { 4: 11, 6: 3 } })], 1);
  expect(buckets.map((bucket) => bucket.rows)).toEqual([1, 0, 3]);
  expect(percentile(buckets, 0.5)).toBe(bound(7));
  expect(percentile(buckets, 0.25)).toBe(bound(5));
  expect(percentile([], 0.5)).toBeNull();
});
