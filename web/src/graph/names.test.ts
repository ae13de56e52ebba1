import { expect, test } from "vitest";
import { nameOf } from "./names";

test("a call is called by its function", () => {
  expect(nameOf('fails: __r1 = fails("__a1_0")')).toBe("fails");
  expect(nameOf("sink preview")).toBe("sink preview");
  expect(nameOf("speeds: mph = speed(miles)")).toBe("speeds: mph = speed(miles)");
});
