import { expect, test } from "vitest";
import { engines, parametersOf } from "./languages";

test("parameters are those of the signature", () => {
  expect(parametersOf("mph(distance: int64, air_time: int64) -> double")).toEqual(["distance", "air_time"]);
  expect(parametersOf("f(s: struct<a: int64, b: string>) -> list<item: double>")).toContain("s");
  expect(parametersOf("now() -> int64")).toEqual([]);
});

test("each engine gets lines that call it", () => {
  for (const { engine, lines } of engines("mph", ["a", "b"])) {
    expect(lines, engine).toContain("libmph.so");
    expect(lines, engine).toContain("mph(");
  }
});
