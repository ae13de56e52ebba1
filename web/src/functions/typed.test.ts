import { expect, test } from "vitest";
import { rowsOf } from "./typed";

test("a line is a row", () => {
  expect(rowsOf('[1, "a"]\n\n  2, null\n3')).toEqual([[1, "a"], [2, null], [3]]);
});

test("an argument may be a list", () => {
  expect(rowsOf("[[1, 2]]\n[1, 2], 3")).toEqual([[[1, 2]], [[1, 2], 3]]);
});

test("what is no JSON is named by its line", () => {
  expect(() => rowsOf("1\nN7")).toThrow("line 2 is no row");
});
