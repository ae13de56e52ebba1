// JSON schemas of connectors, as far as forms need them: objects, choices between objects, enumerations, and values.

export interface JsonSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  const?: unknown;
  default?: unknown;
  enum?: unknown[];
  format?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  maxLength?: number;
  pattern?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
}

export type Value = unknown;
export type Values = Record<string, Value>;

/** What a reference stands for; a value that may be null is one that may be left out. */
export function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema {
  if (schema.$ref) {
    const found = root.$defs?.[schema.$ref.replace("#/$defs/", "")] ?? {};
    const { $ref: _, ...others } = schema;
    return resolved({ ...found, ...others }, root);
  }
  if (schema.anyOf) {
    const some = schema.anyOf.filter((each) => each.type !== "null");
    const [only] = some;
    const { anyOf: _, ...others } = schema;
    if (some.length === 1 && only) return resolved({ ...only, ...withTitle(others) }, root);
    return { ...others, oneOf: some };
  }
  return schema;
}

function withTitle(schema: JsonSchema): JsonSchema {
  return schema.title ? schema : { ...schema };
}

/** What a choice of an object is called: the constant of its discriminator, or its title. */
export function nameOfChoice(choice: JsonSchema, root: JsonSchema): string {
  const { properties = {}, title } = resolved(choice, root);
  const constant = Object.values(properties).find((property) => property.const !== undefined);
  return String(constant?.const ?? title ?? "value");
}

/** What a form begins with: constants, and what has a default that is not null. */
export function initial(schema: JsonSchema, root: JsonSchema): Value {
  const found = resolved(schema, root);
  if (found.const !== undefined) return found.const;
  if (found.default !== undefined && found.default !== null) return found.default;
  const [first] = found.oneOf ?? [];
  if (first) return initial(first, root);
  if (!found.properties) return undefined;
  return Object.fromEntries(
    Object.entries(found.properties)
      .filter(([name, property]) => found.required?.includes(name) || resolved(property, root).const !== undefined)
      .map(([name, property]) => [name, initial(property, root)])
      .filter(([, value]) => value !== undefined),
  );
}

/** A label that people read: the schema's title, unless it is one that was made of the name. */
export function labelOf(name: string, schema: JsonSchema): string {
  const words = name.replaceAll("_", " ");
  return schema.title && !schema.title.startsWith("_") && schema.title.toLowerCase() !== words
    ? schema.title
    : words.charAt(0).toUpperCase() + words.slice(1);
}
