import { expect, test } from "vitest";
import { ago, bytes, count, duration, rate, some } from "./words";

test.each([
  [null, "–"],
  [0, "0"],
  [0.44, "0.4"],
  [12.4, "12"],
  [1_234, "1.2k"],
  [34_567, "35k"],
  [999_900, "1.0M"],
])("rate(%s)", (value, text) => expect(rate(value)).toBe(text));

test.each([
  [0, "0 B"],
  [1_536, "1.5 KiB"],
  [5 * 1024 ** 3, "5.0 GiB"],
])("bytes(%s)", (value, text) => expect(bytes(value)).toBe(text));

test.each([
  [0, "0 s"],
  [0.000_012, "12 µs"],
  [0.003_4, "3.4 ms"],
  [1.25, "1.3 s"],
  [90, "90 s"],
  [600, "10 min"],
  [null, "–"],
])("duration(%s)", (value, text) => expect(duration(value)).toBe(text));

test("how long ago does not jump", () => {
  expect(ago(3e6, 4.2e6)).toBe("1 s");
  expect(ago(9e6, 4e6)).toBe("0 s");
  expect(ago(0, 300e6)).toBe("5 min");
});

test("some rows", () => expect([0.5, 3, 1200].map(some)).toEqual(["0.5", "3", "1,200"]));

test("count", () => expect(count(1_234_567.8)).toBe("1,234,568"));
