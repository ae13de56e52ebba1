// Rows run through a function, in a process of its own: what comes of each, and how long it takes.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import { type Language, tables } from "../api/queries";
import { Badge, Button, Failed, Field, Notice } from "../design/parts";
import { count, duration } from "../design/words";
import { shown } from "../pipelines/rows";
import { TEMPLATE_ROWS } from "./languages";
import { rowsOf } from "./typed";

const OUTCOMES = {
  value: { tone: "good", name: "value" },
  error: { tone: "bad", name: "error" },
  timed_out: { tone: "warn", name: "timed out" },
  cancelled: { tone: "idle", name: "not called" },
} as const;

export function TryIt({ definition, language, mayRun }: { definition: string; language: Language; mayRun: boolean }) {
  const [text, setText] = useState(TEMPLATE_ROWS);
  const tried = useMutation({
    mutationFn: async () =>
      ask(api.POST("/v1/arroyo_udf/udfs/try", { body: { definition, language, rows: rowsOf(text), seconds: 10 } })),
  });
  if (!mayRun) return <p className="quiet">Your token may not run functions.</p>;
  return (
    <div className="stack">
      <Field label="Rows" hint="A row in each line, its values as JSON, in the order of the arguments.">
        {(given) => (
          <textarea
            {...given}
            className="textarea"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <div className="row row-wide">
        <Sample language={language} definition={definition} onRows={setText} />
        <Button look="main" disabled={tried.isPending} onClick={() => tried.mutate()}>
          {tried.isPending ? "Running…" : "Run"}
        </Button>
      </div>
      {tried.error && <Failed error={tried.error} what="" />}
      {tried.data && <Outcome result={tried.data} />}
    </div>
  );
}

function Outcome({ result }: { result: Shape<"TryResult"> }) {
  return (
    <div className="stack-s" role="status">
      {result.crashed && (
        <Notice tone="bad" alert>
          <strong>It has crashed.</strong> {result.crashed}
        </Notice>
      )}
      {result.errors.map((error) => (
        <Notice key={error} tone="bad" alert>
          <pre className="small">{error}</pre>
        </Notice>
      ))}
      {result.signature && (
        <p className="small quiet">
          <code>{result.signature}</code>, {result.kind}, {duration(result.micros / 1e6)} in all
        </p>
      )}
      {result.rows.length > 0 && (
        <div className="table-frame">
          <table className="table">
            <caption className="unseen">What came of each row</caption>
            <thead>
              <tr>
                <th scope="col" className="number">
                  Row
                </th>
                <th scope="col">Outcome</th>
                <th scope="col">Result</th>
                <th scope="col" className="number">
                  Took
                </th>
              </tr>
            </thead>
            <tbody>
              {result.rows.map((row, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: rows are known by their place
                <tr key={at}>
                  <th scope="row" className="number">
                    {count(at + 1)}
                  </th>
                  <td>
                    <Badge tone={OUTCOMES[row.outcome].tone}>{OUTCOMES[row.outcome].name}</Badge>
                  </td>
                  <td className="mono">
                    {row.outcome === "value" ? shown(row.value) : <pre className="small">{row.error}</pre>}
                  </td>
                  <td className="number">{row.micros === null ? "–" : duration(row.micros / 1e6)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {result.output && (
        <details open>
          <summary>What it printed</summary>
          <pre className="code small" tabIndex={0}>
            {result.output}
          </pre>
        </details>
      )}
    </div>
  );
}

/** Takes the first rows of a saved table: of each argument, the column of its name, or else in its place. */
function Sample({
  definition,
  language,
  onRows,
}: {
  definition: string;
  language: Language;
  onRows: (text: string) => void;
}) {
  const saved = useQuery(tables).data?.data.filter((table) => table.table_type === "source") ?? [];
  const sample = useMutation({
    mutationFn: async (id: string) => {
      const [rows, built] = await Promise.all([
        ask(api.POST("/v1/arroyo_udf/connection_tables/{id}/sample", { params: { path: { id } } })),
        ask(api.POST("/v1/arroyo_udf/udfs/try", { body: { definition, language, rows: [], seconds: 10 } })),
      ]);
      const names = rows.fields.map((field) => field.name);
      const columns = built.arguments.map((argument, at) =>
        names.includes(argument.name) ? argument.name : names[at],
      );
      return rows.rows
        .map((row) => JSON.stringify(columns.map((name) => (name === undefined ? null : (row[name] ?? null)))))
        .join("\n");
    },
    onSuccess: onRows,
  });
  if (saved.length === 0)
    return <span className="small quiet">Rows of a connection can be taken when there is one.</span>;
  return (
    <span className="row">
      <select
        className="select"
        style={{ width: "auto", maxWidth: "16rem" }}
        aria-label="Take rows of a table"
        value=""
        disabled={sample.isPending}
        onChange={(event) => sample.mutate(event.target.value)}
      >
        <option value="">{sample.isPending ? "Reading…" : "Take rows of a table…"}</option>
        {saved.map((table) => (
          <option key={table.id} value={table.id}>
            {table.name}
          </option>
        ))}
      </select>
      {sample.error && (
        <span className="small" role="alert" style={{ color: "var(--bad)" }}>
          {said(sample.error)}
        </span>
      )}
    </span>
  );
}
