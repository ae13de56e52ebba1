// A query while it is written: its text with diagnostics, its graph, and a preview of its rows.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { api, ask, said } from "../api/client";
import { type Diagnostic, type Graph, job as jobOf } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Failed, Notice, Panel, Tabs, useSettled } from "../design/parts";
import { useKnown } from "../editor/known";
import { LazyEditor } from "../editor/lazy";
import { marksOfQuery } from "../editor/marks";
import { LazyGraph } from "../graph/lazy";
import { Rows } from "./rows";
import { ENDED, StateBadge } from "./states";

type Side = "graph" | "errors" | "preview";

interface Props {
  query: string;
  onChange: (query: string) => void;
  onValid: (graph: Graph | null) => void;
}

export function QueryWorkbench({ query, onChange, onValid }: Props) {
  const known = useKnown();
  const mayRun = useMay("run");
  const settled = useSettled(query, 400);
  const checked = useQuery({
    queryKey: ["validate", settled],
    queryFn: ({ signal }) => ask(api.POST("/v1/pipelines/validate_query", { body: { query: settled }, signal })),
    enabled: settled.trim() !== "" && mayRun,
    placeholderData: (before) => before,
    staleTime: 30_000,
    retry: false,
  });
  const errors: Diagnostic[] = useMemo(() => checked.data?.errors ?? [], [checked.data]);
  const marks = useMemo(() => marksOfQuery(errors), [errors]);
  const graph = checked.data?.graph ?? null;
  const isCurrent = settled === query && !checked.isPlaceholderData && !checked.isFetching;
  const [side, setSide] = useState<Side>("graph");
  const [preview, setPreview] = useState<{ id: string; query: string } | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const told = useRef(onValid);
  told.current = onValid;
  useEffect(() => told.current(isCurrent && errors.length === 0 ? graph : null), [isCurrent, errors, graph]);

  const start = async () => {
    setRefused(null);
    setSide("preview");
    try {
      const made = await ask(api.POST("/v1/pipelines/preview", { body: { query } }));
      setPreview({ id: made.id, query });
    } catch (error) {
      setPreview(null);
      setRefused(error);
    }
  };

  return (
    <div className="workbench">
      <section className="panel" aria-label="Query">
        <LazyEditor
          label="Query in SQL"
          language="sql"
          value={query}
          onChange={onChange}
          marks={marks}
          known={known}
          rows={24}
        />
        <div className="panel-body row row-wide workbench-foot">
          <span className="small quiet" role="status">
            {query.trim() === ""
              ? "Ctrl+Space proposes tables, columns and functions."
              : !isCurrent
                ? "Checking…"
                : errors.length === 0
                  ? "The query can be planned."
                  : `${errors.length} error${errors.length === 1 ? "" : "s"}`}
          </span>
          <Button onClick={() => void start()} disabled={query.trim() === "" || !mayRun}>
            Preview
          </Button>
        </div>
      </section>
      <div className="panel workbench-side">
        <div className="panel-body">
          <Tabs<Side>
            label="What the query becomes"
            tabs={[
              { name: "graph", title: "Graph" },
              { name: "errors", title: `Errors${errors.length ? ` (${errors.length})` : ""}` },
              { name: "preview", title: "Preview" },
            ]}
            chosen={side}
            onChoose={setSide}
          >
            {side === "graph" &&
              (graph ? (
                <LazyGraph graph={graph} />
              ) : (
                <p className="quiet">
                  {errors.length ? "The errors say what is missing." : "The plan of the query appears here."}
                </p>
              ))}
            {side === "errors" && <Errors errors={errors} failure={checked.error} />}
            {side === "preview" && (
              <>
                {refused !== null && <Failed error={refused} what="No preview." />}
                {preview ? (
                  <Preview key={preview.id} id={preview.id} isOld={preview.query !== query} />
                ) : (
                  refused === null && (
                    <p className="quiet">
                      Preview runs the query for a minute at most, and shows its rows here. Its own sinks get none.
                    </p>
                  )
                )}
              </>
            )}
          </Tabs>
        </div>
      </div>
    </div>
  );
}

function Errors({ errors, failure }: { errors: Diagnostic[]; failure: unknown }) {
  if (failure) return <Failed error={failure} what="The query was not checked." />;
  if (errors.length === 0) return <p className="quiet">There are none.</p>;
  return (
    <ul className="stack-s">
      {errors.map((error) => (
        <li key={`${error.span?.start.line}:${error.span?.start.column}:${error.message}`}>
          <Notice tone="bad">
            {error.span && (
              <span className="small quiet">
                line {error.span.start.line}, column {error.span.start.column}
                <br />
              </span>
            )}
            {error.message}
          </Notice>
        </li>
      ))}
    </ul>
  );
}

function Preview({ id, isOld }: { id: string; isOld: boolean }) {
  const client = useQueryClient();
  const { data: job, error } = useQuery({ ...jobOf(id), refetchInterval: 500 });
  const [failure, setFailure] = useState<string | null>(null);
  const ended = job !== undefined && ENDED.includes(job.state);
  // Nobody looks at it any more: it need not run on.
  useEffect(
    () => () => {
      void api.PATCH("/v1/pipelines/{id}", { params: { path: { id } }, body: { stop: "immediate" } });
    },
    [id],
  );
  const stop = async () => {
    try {
      await ask(api.PATCH("/v1/pipelines/{id}", { params: { path: { id } }, body: { stop: "immediate" } }));
      await client.invalidateQueries({ queryKey: ["pipelines", id] });
    } catch (error) {
      setFailure(said(error));
    }
  };
  return (
    <div className="stack-s">
      <div className="row row-wide">
        <span className="row">
          {job && <StateBadge state={job.state} />}
          {isOld && <span className="small quiet">of the query as it was</span>}
        </span>
        <Button onClick={() => void stop()} disabled={ended || !job}>
          Stop
        </Button>
      </div>
      {error && <Failed error={error} what="The preview cannot be shown." />}
      {failure && <Failed error={failure} what="It was not stopped." />}
      {job?.failure_reason && (
        <Notice tone="bad" alert>
          <pre>{job.failure_reason.error}</pre>
        </Notice>
      )}
      {job && <Rows id={id} job={job} />}
    </div>
  );
}

export function QueryPanel({ query }: { query: string }) {
  return (
    <Panel title="Query">
      <LazyEditor label="Query in SQL" language="sql" value={query} rows={12} />
    </Panel>
  );
}
