import { expect, test } from "vitest";
import { marksOfBuild, marksOfQuery } from "./marks";

test("a diagnostic of a query has a place, or none", () => {
  const span = { start: { line: 2, column: 19 }, end: { line: 2, column: 25 } };
  expect(
    marksOfQuery([
      { message: "there is no column countr", span },
      { message: "it is empty", span: null },
    ]),
  ).toEqual([{ line: 2, column: 19, end: { line: 2, column: 25 }, message: "there is no column countr" }]);
});

test("Python's builder names a line", () => {
  expect(marksOfBuild(["f.py:3: function 'f' does not say the type of argument 'n'"])).toEqual([
    { line: 3, message: "function 'f' does not say the type of argument 'n'" },
  ]);
});

test("a C compiler names line and column", () => {
  expect(marksOfBuild(["f.c:4:10: error: 'm' undeclared"])).toEqual([
    { line: 4, column: 10, message: "error: 'm' undeclared" },
  ]);
});

test("rustc says the place below the message", () => {
  const said = "error[E0425]: cannot find value `m` in this scope\n --> twice.rs:5:5\n  |\n5 |     m * 2";
  expect(marksOfBuild([said])).toEqual([
    { line: 5, column: 5, message: "error[E0425]: cannot find value `m` in this scope" },
  ]);
});

test("what names no place marks nothing", () => {
  expect(marksOfBuild(["a definition has one function"])).toEqual([]);
});
