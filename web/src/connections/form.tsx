// A form out of a JSON schema.

import { Field } from "../design/parts";
import { initial, type JsonSchema, labelOf, nameOfChoice, resolved, type Value, type Values } from "./schema";

interface Props {
  schema: JsonSchema;
  root: JsonSchema;
  value: Values;
  onChange: (value: Values) => void;
}

export function SchemaForm({ schema, root, value, onChange }: Props) {
  const found = resolved(schema, root);
  const set = (name: string, next: Value) => {
    const { [name]: _, ...others } = value;
    onChange(next === undefined ? others : { ...others, [name]: next });
  };
  return (
    <div className="stack">
      {Object.entries(found.properties ?? {}).map(([name, property]) => (
        <Part
          key={name}
          name={name}
          schema={property}
          root={root}
          required={found.required?.includes(name) ?? false}
          value={value[name]}
          onChange={(next) => set(name, next)}
        />
      ))}
    </div>
  );
}

interface PartProps {
  name: string;
  schema: JsonSchema;
  root: JsonSchema;
  required: boolean;
  value: Value;
  onChange: (value: Value) => void;
}

function Part({ name, schema, root, required, value, onChange }: PartProps) {
  const found = resolved(schema, root);
  const label = labelOf(name, found) + (required ? "" : " (optional)");
  if (found.const !== undefined) return null;
  if (found.oneOf) {
    const names = found.oneOf.map((choice) => nameOfChoice(choice, root));
    const now = value as Values | undefined;
    const at = Math.max(
      0,
      names.findIndex((each) => Object.values(now ?? {}).includes(each)),
    );
    const choice = found.oneOf[at] ?? {};
    return (
      <fieldset className="field stack">
        <legend>{label}</legend>
        <div className="row">
          {names.map((each, number) => (
            <label key={each} className="check">
              <input
                type="radio"
                name={name}
                checked={number === at}
                onChange={() => onChange(initial(found.oneOf?.[number] ?? {}, root))}
              />
              <span>{each}</span>
            </label>
          ))}
        </div>
        <SchemaForm schema={choice} root={root} value={now ?? {}} onChange={onChange} />
      </fieldset>
    );
  }
  if (found.properties) {
    return (
      <details className="field">
        <summary>{label}</summary>
        <div className="panel-body">
          <SchemaForm
            schema={found}
            root={root}
            value={(value as Values | undefined) ?? {}}
            onChange={(next) => onChange(!required && Object.keys(next).length === 0 ? undefined : next)}
          />
        </div>
      </details>
    );
  }
  if (found.type === "boolean") {
    return (
      <label className="check">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />
        <span>{label}</span>
      </label>
    );
  }
  const isNumber = found.type === "integer" || found.type === "number";
  return (
    <Field label={label} hint={found.description}>
      {(given) =>
        found.enum ? (
          <select
            {...given}
            className="select"
            required={required}
            value={value === undefined ? "" : String(value)}
            onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
          >
            {!required && <option value="">as it is by default</option>}
            {found.enum.map((each) => (
              <option key={String(each)} value={String(each)}>
                {String(each)}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...given}
            className="input"
            type={isNumber ? "number" : found.format === "password" ? "password" : "text"}
            step={found.type === "number" ? "any" : undefined}
            min={found.minimum ?? found.exclusiveMinimum}
            max={found.maximum}
            maxLength={found.maxLength}
            required={required}
            value={value === undefined ? "" : String(value)}
            onChange={(event) => {
              const text = event.target.value;
              onChange(text === "" ? undefined : isNumber ? Number(text) : text);
            }}
          />
        )
      }
    </Field>
  );
}
