// A function is written, built, tried and saved here.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { api, ask, type Shape } from "../api/client";
import { type Language, type Udf, udfs, udfUse } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Dialog, Failed, Field, Notice, Tabs, useSettled, useToast, Waiting } from "../design/parts";
import { moment } from "../design/words";
import { LazyEditor } from "../editor/lazy";
import { marksOfBuild } from "../editor/marks";
import { StateBadge } from "../pipelines/states";
import { engines, LANGUAGES, parametersOf } from "./languages";
import { TryIt } from "./try";
import "./functions.css";

const route = getRouteApi("/functions/$id");

export function NewFunction() {
  return <FunctionScreen key="new" saved={null} />;
}

export function EditFunction() {
  const { id } = route.useParams();
  const { data, error } = useQuery(udfs);
  const saved = data?.data.find((udf) => udf.id === id);
  if (error && !data) return <Failed error={error} what="The function cannot be read." />;
  if (!data) return <Waiting />;
  if (!saved) return <Failed error={new Error("It may have been deleted.")} what="There is no such function." />;
  return <FunctionScreen key={id} saved={saved} />;
}

type Side = "try" | "build" | "use" | "versions" | "engines";

function FunctionScreen({ saved }: { saved: Udf | null }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const mayChange = useMay("admin");
  const mayRun = useMay("run");
  const [language, setLanguage] = useState<Language>(saved?.language ?? "python");
  const [definition, setDefinition] = useState(saved?.definition ?? LANGUAGES.python.template);
  const [description, setDescription] = useState(saved?.description ?? "");
  const [side, setSide] = useState<Side>("try");
  const [deleting, setDeleting] = useState(false);
  const written = useMemo(() => ({ definition, language }), [definition, language]);
  const settled = useSettled(written, language === "rust" ? 1_200 : 500);
  const built = useQuery({
    queryKey: ["build", settled.language, settled.definition],
    queryFn: ({ signal }) => ask(api.POST("/v1/udfs/validate", { body: settled, signal })),
    enabled: mayRun && settled.definition.trim() !== "",
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const errors = useMemo(() => built.data?.errors ?? [], [built.data]);
  const marks = useMemo(() => (settled === written ? marksOfBuild(errors) : []), [errors, settled, written]);
  useEffect(() => {
    if (errors.length > 0) setSide((now) => (now === "try" ? "build" : now));
  }, [errors]);
  const isBuilt = built.data?.udf_name != null && settled === written;
  const isChanged =
    saved === null ||
    saved.definition !== definition ||
    saved.language !== language ||
    (saved.description ?? "") !== description;

  const save = useMutation({
    mutationFn: () =>
      saved
        ? ask(
            api.PATCH("/v1/udfs/{id}", {
              params: { path: { id: saved.id } },
              body: { definition, language, description },
            }),
          )
        : ask(api.POST("/v1/udfs", { body: { prefix: "/", definition, language, description: description || null } })),
    onSuccess: async (udf) => {
      toast(
        "good",
        saved
          ? `${udf.name} is saved. Pipelines keep the older one until they are restarted with it.`
          : `${udf.name} is saved.`,
      );
      await client.invalidateQueries({ queryKey: ["udfs"] });
      await navigate({ to: "/functions/$id", params: { id: udf.id } });
    },
  });
  const remove = useMutation({
    mutationFn: () => ask(api.DELETE("/v1/udfs/{id}", { params: { path: { id: saved?.id ?? "" } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["udfs"] });
      await navigate({ to: "/functions" });
    },
  });
  const choose = (next: Language) => {
    // A template gives way; what somebody has written does not.
    if (Object.values(LANGUAGES).some(({ template }) => template === definition))
      setDefinition(LANGUAGES[next].template);
    setLanguage(next);
  };
  const status = !mayRun
    ? "You may read it."
    : settled !== written || built.isFetching
      ? "Building…"
      : built.error
        ? "It was not built."
        : isBuilt
          ? `${built.data?.udf_name} is built.`
          : errors.length > 0
            ? `${errors.length} error${errors.length === 1 ? "" : "s"}`
            : "";
  return (
    <div className="stack">
      <div className="head">
        <h1>{saved ? saved.name : "New function"}</h1>
        {mayChange && (
          <div className="row">
            {saved && (
              <Button look="bad" onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            )}
            <Button look="main" disabled={!isBuilt || !isChanged || save.isPending} onClick={() => save.mutate()}>
              {save.isPending ? "Saving…" : "Save"}
            </Button>
          </div>
        )}
      </div>
      {save.error && <Failed error={save.error} what="It was not saved." />}
      <div className="workbench-functions">
        <section className="panel" aria-label="Definition">
          <div className="panel-head">
            <div className="row">
              <label htmlFor="language" className="small quiet">
                Language
              </label>
              <select
                id="language"
                className="select"
                style={{ width: "auto" }}
                value={language}
                onChange={(event) => choose(event.target.value as Language)}
              >
                {Object.entries(LANGUAGES).map(([key, { name }]) => (
                  <option key={key} value={key}>
                    {name}
                  </option>
                ))}
              </select>
            </div>
            <span className="small quiet" role="status">
              {status}
            </span>
          </div>
          <LazyEditor
            label={`Definition in ${LANGUAGES[language].name}`}
            language={language}
            value={definition}
            onChange={setDefinition}
            marks={marks}
            rows={22}
          />
          <div className="panel-body workbench-foot">
            <Field label="What it does">
              {(given) => (
                <input
                  {...given}
                  className="input"
                  maxLength={10_000}
                  value={description}
                  disabled={!mayChange}
                  onChange={(event) => setDescription(event.target.value)}
                />
              )}
            </Field>
          </div>
        </section>
        <div className="panel panel-body">
          <Tabs<Side>
            label="About this function"
            tabs={[
              { name: "try", title: "Try it" },
              { name: "build", title: `Build${errors.length ? ` (${errors.length})` : ""}` },
              ...(saved
                ? [
                    { name: "use" as const, title: "Pipelines" },
                    { name: "versions" as const, title: "Versions" },
                  ]
                : []),
              { name: "engines", title: "Engines" },
            ]}
            chosen={side}
            onChoose={setSide}
          >
            <div hidden={side !== "try"}>
              <TryIt definition={definition} language={language} mayRun={mayRun} />
            </div>
            {side === "build" && <BuildOutput errors={errors} error={built.error} isBuilt={isBuilt} />}
            {side === "use" && saved && <Use id={saved.id} />}
            {side === "versions" && saved && (
              <Versions
                id={saved.id}
                written={written}
                onTake={(version) => {
                  setLanguage(version.language);
                  setDefinition(version.definition);
                }}
              />
            )}
            {side === "engines" && <Engines saved={saved} name={built.data?.udf_name ?? null} />}
          </Tabs>
        </div>
      </div>
      {deleting && saved && (
        <Dialog
          title={`Delete ${saved.name}`}
          submit="Delete it"
          bad
          busy={remove.isPending}
          error={remove.error}
          onClose={() => setDeleting(false)}
          onSubmit={() => remove.mutate()}
        >
          <p>Pipelines that use it keep it. New queries cannot call it any more.</p>
        </Dialog>
      )}
    </div>
  );
}

function BuildOutput({ errors, error, isBuilt }: { errors: readonly string[]; error: unknown; isBuilt: boolean }) {
  if (error) return <Failed error={error} what="It was not built." />;
  if (errors.length === 0) {
    return (
      <p className="quiet">{isBuilt ? "It is built, without a complaint." : "What the compiler says appears here."}</p>
    );
  }
  return (
    <ul className="stack-s">
      {errors.map((text) => (
        <li key={text}>
          <Notice tone="bad">
            <pre className="small">{text}</pre>
          </Notice>
        </li>
      ))}
    </ul>
  );
}

function Use({ id }: { id: string }) {
  const { data, error } = useQuery(udfUse(id));
  if (error) return <Failed error={error} what="It is not known who uses it." />;
  if (!data) return <Waiting />;
  return (
    <div className="stack-s">
      {data.signature && <code>{data.signature}</code>}
      {data.pipelines.length === 0 ? (
        <p className="quiet">No pipeline uses it.</p>
      ) : (
        <table className="table">
          <caption className="unseen">Pipelines that use it</caption>
          <thead>
            <tr>
              <th scope="col">Pipeline</th>
              <th scope="col">State</th>
              <th scope="col">Version</th>
            </tr>
          </thead>
          <tbody>
            {data.pipelines.map((pipeline) => (
              <tr key={pipeline.id}>
                <th scope="row">
                  <Link to="/pipelines/$id" params={{ id: pipeline.id }} search={{}}>
                    {pipeline.name}
                  </Link>
                </th>
                <td>
                  <StateBadge state={pipeline.state} />
                </td>
                <td>{pipeline.is_current ? "this one" : "an older one: restart it with the saved functions"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

type Written = Pick<Shape<"FunctionVersion">, "language" | "definition">;

function Versions({ id, written, onTake }: { id: string; written: Written; onTake: (version: Written) => void }) {
  const { data, error } = useQuery(udfUse(id));
  if (error) return <Failed error={error} what="The versions cannot be read." />;
  if (!data) return <Waiting />;
  return (
    <ol className="stack-s">
      {data.versions.map((version, at) => {
        const isHere = version.definition === written.definition && version.language === written.language;
        return (
          <li key={version.number} className="panel">
            <div className="panel-head">
              <span>
                <strong>Version {version.number}</strong>{" "}
                <span className="small quiet">
                  {moment(version.created_at)}
                  {at === 0 && ", the saved one"}
                </span>
              </span>
              <Button disabled={isHere} onClick={() => onTake(version)}>
                {isHere ? "In the editor" : "Take it into the editor"}
              </Button>
            </div>
            <details className="panel-body">
              <summary>{LANGUAGES[version.language].name}</summary>
              <pre className="code small" tabIndex={0}>
                {version.definition}
              </pre>
            </details>
          </li>
        );
      })}
    </ol>
  );
}

function Engines({ saved, name }: { saved: Udf | null; name: string | null }) {
  const use = useQuery({ ...udfUse(saved?.id ?? ""), enabled: saved !== null }).data;
  const known = name ?? saved?.name;
  const parameters = use?.signature ? parametersOf(use.signature) : ["a", "b"];
  return (
    <div className="stack">
      <p>
        The function is one shared library. These engines load it as it is.{" "}
        {saved ? (
          <a href={`/api/v1/arroyo_udf/udfs/${saved.id}/library`} download>
            Get lib{saved.name}.so
          </a>
        ) : (
          <span className="quiet">Save it to get the library.</span>
        )}
      </p>
      {known &&
        engines(known, parameters).map(({ engine, lines }) => (
          <div key={engine} className="stack-s">
            <h2>{engine}</h2>
            <pre className="code small" tabIndex={0}>
              {lines}
            </pre>
          </div>
        ))}
    </div>
  );
}
