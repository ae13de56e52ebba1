// A new table, step by step: its connector, its address, its place, its columns; tested before it is saved.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import { type Connector, connectors, profiles } from "../api/queries";
import { Button, Failed, Field, Notice, Panel, useToast, Waiting } from "../design/parts";
import { SchemaForm } from "./form";
import { ConnectorIcon } from "./icon";
import { initial, type JsonSchema, type Values } from "./schema";
import "./connections.css";

const route = getRouteApi("/connections/new");
type Schema = Shape<"ConnectionSchema">;
type SourceField = Shape<"SourceField">;

export function ConnectionWizard() {
  const { connector: name } = route.useSearch();
  const { data, error } = useQuery(connectors);
  if (error) return <Failed error={error} what="The connectors cannot be shown." />;
  if (!data) return <Waiting />;
  const shown = data.data.filter((each) => each.enabled && !each.hidden);
  const chosen = shown.find((each) => each.id === name);
  return (
    <div className="stack">
      <h1>New table</h1>
      {chosen ? <Steps key={chosen.id} connector={chosen} /> : <Choice all={shown} />}
    </div>
  );
}

function Choice({ all }: { all: Connector[] }) {
  const navigate = route.useNavigate();
  return (
    <>
      <p className="quiet">Where is it?</p>
      <ul className="connectors">
        {all.map((connector) => (
          <li key={connector.id}>
            <button
              type="button"
              className="panel connector"
              onClick={() => void navigate({ search: { connector: connector.id } })}
            >
              <ConnectorIcon connector={connector} />
              <span>
                <strong>{connector.name}</strong>
                <br />
                <span className="quiet">{connector.description}</span>
                <br />
                <span className="small quiet">
                  {[connector.source && "source", connector.sink && "sink"].filter(Boolean).join(" and ")}
                </span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

const FORMATS = ["json", "csv", "tsv", "parquet", "arrow", "raw_string"] as const;
const NEW = "new";
const NONE = "none";

function Steps({ connector }: { connector: Connector }) {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const toast = useToast();
  const config = useMemo(() => JSON.parse(connector.table_config) as JsonSchema, [connector]);
  const address = useMemo(
    () => (connector.connection_config ? (JSON.parse(connector.connection_config) as JsonSchema) : null),
    [connector],
  );
  const known =
    useQuery({ ...profiles, enabled: address !== null }).data?.data.filter((each) => each.connector === connector.id) ??
    [];
  const [name, setName] = useState("");
  const [values, setValues] = useState<Values>(() => initial(config, config) as Values);
  const needsProfile = (address?.required ?? []).length > 0;
  const [profile, setProfile] = useState(needsProfile ? NEW : NONE);
  const [profileName, setProfileName] = useState("");
  const [profileValues, setProfileValues] = useState<Values>({});
  const [format, setFormat] = useState<(typeof FORMATS)[number]>("json");
  const [fields, setFields] = useState<SourceField[] | null>(null);
  const [tested, setTested] = useState<Shape<"TestSourceMessage">[]>([]);
  const isSource = isSourceTable(values, connector);

  const profileId = async (): Promise<string | null> => {
    if (address === null || profile === NONE) return null;
    if (profile !== NEW) return profile;
    const made = await ask(
      api.POST("/v1/connection_profiles", {
        body: { name: profileName, connector: connector.id, config: profileValues },
      }),
    );
    setProfile(made.id);
    await client.invalidateQueries({ queryKey: ["profiles"] });
    return made.id;
  };
  const schema = (): Schema | null => {
    if (!connector.custom_schemas) return null;
    const wanted: Record<string, unknown> = { format: { type: format } };
    return (fields === null ? { ...wanted, fields: [], inferred: true } : { ...wanted, fields }) as Schema;
  };
  const asked = async (): Promise<Shape<"ConnectionTablePost">> => ({
    name,
    connector: connector.id,
    connection_profile_id: await profileId(),
    config: values,
    schema: schema(),
  });

  const infer = useMutation({
    mutationFn: async () =>
      ask(api.POST("/v1/connection_tables/schemas/sample", { body: { ...(await asked()), name: name || "sample" } })),
    onSuccess: (found) => setFields(found.fields ?? []),
  });
  const test = useMutation({
    mutationFn: async () => {
      setTested([]);
      const body = await asked();
      const answer = await fetch("/api/v1/connection_tables/test", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(said((JSON.parse(text) as { error?: string }).error ?? text));
      return text
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => JSON.parse(line.slice(5)) as Shape<"TestSourceMessage">);
    },
    onSuccess: setTested,
  });
  const create = useMutation({
    mutationFn: async () => ask(api.POST("/v1/connection_tables", { body: await asked() })),
    onSuccess: async (table) => {
      toast("good", `${table.name} is saved: queries may use it by its name.`);
      await client.invalidateQueries({ queryKey: ["tables"] });
      await navigate({ to: "/connections" });
    },
  });
  return (
    <form
      className="stack wizard"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <div className="row">
        <ConnectorIcon connector={connector} />
        <strong>{connector.name}</strong>
        <Button onClick={() => void navigate({ search: {} })}>Another connector</Button>
      </div>
      {address && (
        <Panel title="Address">
          <div className="panel-body stack">
            <Field label="Profile" hint="Several tables can use one address.">
              {(given) => (
                <select
                  {...given}
                  className="select"
                  value={profile}
                  onChange={(event) => setProfile(event.target.value)}
                >
                  {!needsProfile && <option value={NONE}>none</option>}
                  <option value={NEW}>a new one</option>
                  {known.map((each) => (
                    <option key={each.id} value={each.id}>
                      {each.name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            {profile === NEW && (
              <>
                <Field label="Name of the profile">
                  {(given) => (
                    <input
                      {...given}
                      className="input"
                      required
                      value={profileName}
                      onChange={(event) => setProfileName(event.target.value)}
                    />
                  )}
                </Field>
                <SchemaForm schema={address} root={address} value={profileValues} onChange={setProfileValues} />
              </>
            )}
          </div>
        </Panel>
      )}
      <Panel title="Table">
        <div className="panel-body stack">
          <Field label="Name" hint="As queries call it: letters, digits and _">
            {(given) => (
              <input
                {...given}
                className="input"
                required
                pattern="[A-Za-z_][A-Za-z0-9_]*"
                maxLength={200}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <SchemaForm schema={config} root={config} value={values} onChange={setValues} />
        </div>
      </Panel>
      {connector.custom_schemas && (
        <Panel title="Columns">
          <div className="panel-body stack">
            <Field label="Format">
              {(given) => (
                <select
                  {...given}
                  className="select"
                  value={format}
                  onChange={(event) => setFormat(event.target.value as typeof format)}
                >
                  {FORMATS.map((each) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              )}
            </Field>
            {isSource && (
              <div className="row">
                <Button disabled={infer.isPending} onClick={() => infer.mutate()}>
                  {infer.isPending ? "Reading…" : "Infer the columns from the first rows"}
                </Button>
                {fields === null && <span className="small quiet">Otherwise they are inferred when it is saved.</span>}
              </div>
            )}
            {infer.error && <Failed error={infer.error} what="The columns were not inferred." />}
            <Fields fields={fields} onChange={setFields} />
          </div>
        </Panel>
      )}
      {test.error && <Failed error={test.error} what="The test has failed." />}
      {tested.map((message) => (
        <Notice key={message.message} tone={message.error ? "bad" : message.done ? "good" : "idle"}>
          {message.message}
        </Notice>
      ))}
      {create.error && <Failed error={create.error} what="It was not saved." />}
      <div className="row" style={{ justifyContent: "flex-end" }}>
        <Button disabled={test.isPending || name === ""} onClick={() => test.mutate()}>
          {test.isPending ? "Testing…" : "Test"}
        </Button>
        <Button type="submit" look="main" disabled={create.isPending}>
          {create.isPending ? "Saving…" : "Save"}
        </Button>
      </div>
    </form>
  );
}

function isSourceTable(values: Values, connector: Connector): boolean {
  const chosen = values.table_type;
  const type = typeof chosen === "object" && chosen !== null && "type" in chosen ? chosen.type : values.type;
  return type === undefined ? connector.source : type === "source";
}

const TYPES = [
  "int32",
  "int64",
  "uint32",
  "uint64",
  "float32",
  "float64",
  "bool",
  "string",
  "bytes",
  "timestamp",
  "json",
] as const;

function Fields({ fields, onChange }: { fields: SourceField[] | null; onChange: (fields: SourceField[]) => void }) {
  const all = fields ?? [];
  const set = (at: number, next: Partial<SourceField>) =>
    onChange(all.map((field, each) => (each === at ? { ...field, ...next } : field)));
  return (
    <div className="stack-s">
      {all.map((field, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a column is known by its place while its name is written
        <div key={at} className="row field-row">
          <input
            className="input"
            aria-label={`Name of column ${at + 1}`}
            required
            value={field.name}
            onChange={(event) => set(at, { name: event.target.value })}
          />
          <select
            className="select"
            aria-label={`Type of column ${at + 1}`}
            value={field.type}
            onChange={(event) => set(at, { type: event.target.value as SourceField["type"], sql_name: null })}
          >
            {[...new Set([...TYPES, field.type])].map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
          <label className="check">
            <input
              type="checkbox"
              checked={field.required ?? false}
              onChange={(event) => set(at, { required: event.target.checked })}
            />
            <span>never null</span>
          </label>
          <Button aria-label={`Remove column ${at + 1}`} onClick={() => onChange(all.filter((_, each) => each !== at))}>
            ✕
          </Button>
        </div>
      ))}
      <div>
        <Button onClick={() => onChange([...all, { name: "", type: "string", required: false } as SourceField])}>
          Add a column
        </Button>
      </div>
    </div>
  );
}
