import { expect, test } from "vitest";
import { labelsOf, textOf } from "./labels";

test("labels are pairs", () => {
  expect(labelsOf(" team = ads, stage=test=1,, alone ")).toEqual({ team: "ads", stage: "test=1", alone: "" });
  expect(labelsOf("")).toEqual({});
});

test("a text says them again", () => {
  expect(labelsOf(textOf({ team: "ads", stage: "test" }))).toEqual({ team: "ads", stage: "test" });
});
