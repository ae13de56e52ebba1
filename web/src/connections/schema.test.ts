import { expect, test } from "vitest";
import { initial, type JsonSchema, labelOf, nameOfChoice, resolved } from "./schema";

const FILES: JsonSchema = {
  $defs: {
    Source: {
      type: "object",
      properties: {
        type: { const: "source", type: "string" },
        path: { type: "string", title: "Path" },
        compression_format: { anyOf: [{ enum: ["none", "gzip"], type: "string" }, { type: "null" }], default: null },
      },
      required: ["type", "path"],
    },
    Sink: { type: "object", properties: { type: { const: "sink" } }, required: ["type"] },
  },
  properties: { table_type: { oneOf: [{ $ref: "#/$defs/Source" }, { $ref: "#/$defs/Sink" }] } },
  required: ["table_type"],
};

test("a form begins with the first choice", () => {
  expect(initial(FILES, FILES)).toEqual({ table_type: { type: "source" } });
});

test("choices are called by their constants", () => {
  expect(FILES.properties?.table_type?.oneOf?.map((choice) => nameOfChoice(choice, FILES))).toEqual(["source", "sink"]);
});

test("what may be null is what it is otherwise", () => {
  const compression = FILES.$defs?.Source?.properties?.compression_format ?? {};
  expect(resolved(compression, FILES).enum).toEqual(["none", "gzip"]);
});

test("labels", () => {
  expect(labelOf("compression_format", { title: "Compression Format" })).toBe("Compression format");
  expect(labelOf("event_rate", { title: "Messages per second" })).toBe("Messages per second");
});
