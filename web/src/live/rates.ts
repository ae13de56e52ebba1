// Curves and rates out of counts. A count never jumps; a rate is a difference of two counts of one generation.

import type { NodeCounts, Point } from "../api/queries";

/** Microseconds after which a job that does something would have told new counts. */
const TOLD_AGAIN = 6_000_000;
/** Microseconds over which the rate of now is taken. */
const LATELY = 5_000_000;

export type Counted = (node: NodeCounts) => number;

export const rowsIn: Counted = (node) => node.rows_in;
export const rowsOut: Counted = (node) => node.rows_out;
export const blocked: Counted = (node) => node.blocked;
export const retries: Counted = (node) => node.retries;
export const outcome =
  (name: string): Counted =>
  (node) =>
    node.outcomes[name] ?? 0;

/** With what holds now: counts that do not change are not told again. */
export function untilNow(points: readonly Point[], now: number): readonly Point[] {
  const last = points.at(-1);
  if (last === undefined || now - last.at < TOLD_AGAIN) return points;
  return [...points, { ...last, at: now }];
}

export function nodeOf(point: Point | undefined, id: number): NodeCounts | undefined {
  return point?.nodes.find((node) => node.node_id === id);
}

/** Per second, now. null: it is not known. */
export function rateNow(points: readonly Point[], id: number, counted: Counted): number | null {
  const last = points.at(-1);
  if (last === undefined) return null;
  const before = points.find((point) => point.at >= last.at - LATELY - 500_000 && point.generation === last.generation);
  if (before === undefined || before === last) return null;
  return difference(before, last, id, counted);
}

function difference(before: Point, after: Point, id: number, counted: Counted): number | null {
  const [was, is] = [nodeOf(before, id), nodeOf(after, id)];
  const seconds = (after.at - before.at) / 1e6;
  if (was === undefined || is === undefined || seconds <= 0 || before.generation !== after.generation) return null;
  return Math.max(0, counted(is) - counted(was)) / seconds;
}

export interface Curve {
  /** Seconds since 1970. */
  times: number[];
  lines: (number | null)[][];
}

/** Rates over time, one line for each count. */
export function curve(points: readonly Point[], id: number, counted: readonly Counted[]): Curve {
  const times: number[] = [];
  const lines: (number | null)[][] = counted.map(() => []);
  for (let at = 1; at < points.length; at++) {
    const [before, after] = [points[at - 1], points[at]];
    if (before === undefined || after === undefined || after.at - before.at < 500_000) continue;
    times.push(after.at / 1e6);
    for (const [line, count] of counted.entries()) lines[line]?.push(difference(before, after, id, count));
  }
  return { times, lines };
}

/** What is so at each time, one line for each value. */
export function states(points: readonly Point[], id: number, values: readonly Counted[]): Curve {
  const nodes = points.map((point) => nodeOf(point, id));
  return {
    times: points.map((point) => point.at / 1e6),
    lines: values.map((value) => nodes.map((node) => (node === undefined ? null : value(node)))),
  };
}

/** The share of time in which a node could not hand on its rows, from 0 to 1. */
export function pressure(points: readonly Point[], id: number): number | null {
  const rate = rateNow(points, id, blocked);
  return rate === null ? null : Math.min(1, rate);
}

export interface Bucket {
  /** Seconds. */
  from: number;
  to: number;
  rows: number;
}

/** The seconds at which a bucket of latencies begins: four for each doubling. */
export function bound(bucket: number): number {
  const [octave, quarter] = [Math.floor(bucket / 4), bucket % 4];
  return 1024e-9 * (octave === 0 ? quarter : (4 + quarter) * 2 ** (octave - 1));
}

/** How long rows took that ended after the first of these points, without gaps between buckets. */
export function latencies(points: readonly Point[], id: number): Bucket[] {
  const last = points.at(-1);
  const first = points.find((point) => point.generation === last?.generation);
  const [was, is] = [nodeOf(first, id)?.latency ?? {}, nodeOf(last, id)?.latency ?? {}];
  const more =
    first === last ? is : Object.fromEntries(Object.entries(is).map(([at, rows]) => [at, rows - (was[at] ?? 0)]));
  const used = Object.keys(more)
    .map(Number)
    .filter((at) => (more[at] ?? 0) > 0);
  if (used.length === 0) return [];
  const [low, high] = [Math.min(...used), Math.max(...used)];
  return Array.from({ length: high - low + 1 }, (_, step) => {
    const at = low + step;
    return { from: bound(at), to: bound(at + 1), rows: more[at] ?? 0 };
  });
}

/** The seconds within which a share of the rows ended; null without rows. */
export function percentile(buckets: readonly Bucket[], wanted: number): number | null {
  const total = buckets.reduce((sum, bucket) => sum + bucket.rows, 0);
  let soFar = 0;
  for (const bucket of buckets) {
    soFar += bucket.rows;
    if (total > 0 && soFar >= total * wanted) return bucket.to;
  }
  return null;
}
