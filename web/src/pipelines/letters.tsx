// Rows that failed: to look at, to mend, and to run again when the cause is gone.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import type { Job, Pipeline } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Dialog, Failed, Field, Notice, useToast, Waiting } from "../design/parts";
import { count } from "../design/words";
import { shown } from "./rows";
import { ENDED } from "./states";
import "./log.css";

type Letter = Shape<"DeadLetter">;
const keyOf = (letter: { file: string; row: number }) => `${letter.file}:${letter.row}`;

export function Letters({ pipeline, job }: { pipeline: Pipeline; job: Job }) {
  const mayRun = useMay("run");
  const client = useQueryClient();
  const toast = useToast();
  const queryKey = ["pipelines", pipeline.id, "letters"];
  const { data, error } = useQuery({
    queryKey,
    queryFn: () =>
      ask(
        api.GET("/v1/arroyo_udf/pipelines/{id}/dead_letters", {
          params: { path: { id: pipeline.id }, query: { limit: 200 } },
        }),
      ),
    refetchInterval: 5_000,
  });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [changed, setChanged] = useState<ReadonlyMap<string, Record<string, unknown>>>(new Map());
  const [editing, setEditing] = useState<Letter | null>(null);
  const replay = useMutation({
    mutationFn: () => {
      const rows = (data?.data ?? []).filter((letter) => chosen.has(keyOf(letter)));
      return ask(
        api.POST("/v1/arroyo_udf/pipelines/{id}/dead_letters/replay", {
          params: { path: { id: pipeline.id } },
          body: {
            rows: rows.length ? rows.map(({ file, row }) => ({ file, row })) : null,
            values: rows
              .filter((letter) => changed.has(keyOf(letter)))
              .map((letter) => ({ file: letter.file, row: letter.row, values: changed.get(keyOf(letter)) ?? {} })),
            again: false,
          },
        }),
      );
    },
    onSuccess: async (done) => {
      toast(done.failed ? "warn" : "good", summary(done));
      setChosen(new Set());
      setChanged(new Map());
      await client.invalidateQueries({ queryKey });
    },
    onError: (error) => toast("bad", said(error)),
  });
  if (error && !data) return <Failed error={error} what="The dead letters cannot be read." />;
  if (!data) return <Waiting />;
  const ended = ENDED.includes(job.state);
  const toggle = (letter: Letter) => {
    const next = new Set(chosen);
    if (!next.delete(keyOf(letter))) next.add(keyOf(letter));
    setChosen(next);
  };
  return (
    <div className="stack">
      <div className="row row-wide">
        <span>
          <strong>{count(data.count)}</strong> dead letters
          {data.place && <span className="quiet mono"> {data.place}</span>}
        </span>
        {mayRun && data.data.length > 0 && (
          <span className="row">
            {!ended && <span className="small quiet">Stop the pipeline to replay them.</span>}
            <Button disabled={!ended || replay.isPending} onClick={() => replay.mutate()}>
              {replay.isPending ? "Replaying…" : chosen.size ? `Replay ${chosen.size}` : "Replay all that wait"}
            </Button>
          </span>
        )}
      </div>
      {data.why_not && <Notice tone="warn">{data.why_not}</Notice>}
      {data.data.length === 0 ? (
        <p className="quiet">No row has failed so far.</p>
      ) : (
        <div className="panel table-frame">
          <table className="table table-hover">
            <caption className="unseen">Rows that failed, the newest first</caption>
            <thead>
              <tr>
                <th scope="col">
                  <span className="unseen">Chosen</span>
                </th>
                <th scope="col">Row</th>
                <th scope="col">Why</th>
                {data.columns.map((column) => (
                  <th key={column.name} scope="col">
                    {column.name} <span className="small">{column.type}</span>
                  </th>
                ))}
                <th scope="col">
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.data.map((letter, at) => {
                const values = { ...letter.values, ...changed.get(keyOf(letter)) };
                return (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a row that failed twice has two letters
                  <tr key={`${keyOf(letter)} ${at}`}>
                    <td>
                      {mayRun && (
                        <input
                          type="checkbox"
                          aria-label={`Choose row ${letter.row} of ${letter.file}`}
                          checked={chosen.has(keyOf(letter))}
                          onChange={() => toggle(letter)}
                        />
                      )}
                    </td>
                    <th scope="row">
                      {count(letter.row)} <div className="small quiet mono">{letter.file}</div>
                    </th>
                    <td>
                      <div className="small quiet">
                        {letter.outcome}
                        {letter.operator && ` in ${letter.operator}`}
                        {letter.attempts && letter.attempts > 1 ? `, ${letter.attempts} calls` : ""}
                      </div>
                      <pre className="small letter-error">{letter.error}</pre>
                    </td>
                    {data.columns.map((column) => (
                      <td key={column.name} className="mono">
                        {column.name in (changed.get(keyOf(letter)) ?? {}) ? (
                          <mark>{shown(values[column.name])}</mark>
                        ) : (
                          shown(values[column.name])
                        )}
                      </td>
                    ))}
                    <td>{mayRun && <Button onClick={() => setEditing(letter)}>Edit…</Button>}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {editing && (
        <EditLetter
          letter={editing}
          columns={data.columns}
          values={{ ...editing.values, ...changed.get(keyOf(editing)) }}
          onClose={() => setEditing(null)}
          onSave={(values) => {
            setChanged(new Map(changed).set(keyOf(editing), values));
            setChosen(new Set(chosen).add(keyOf(editing)));
            setEditing(null);
          }}
        />
      )}
    </div>
  );
}

interface EditProps {
  letter: Letter;
  columns: Shape<"LetterColumn">[];
  values: Record<string, unknown>;
  onClose: () => void;
  onSave: (changed: Record<string, unknown>) => void;
}

function EditLetter({ letter, columns, values, onClose, onSave }: EditProps) {
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(columns.map(({ name }) => [name, written(values[name])])),
  );
  const [error, setError] = useState<unknown>(null);
  const save = () => {
    try {
      const now = Object.fromEntries(columns.map(({ name, type }) => [name, read(texts[name] ?? "", type, name)]));
      onSave(
        Object.fromEntries(
          Object.entries(now).filter(([name, value]) => written(value) !== written(letter.values[name])),
        ),
      );
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      title={`Row ${letter.row} of ${letter.file}`}
      submit="Change it for the replay"
      error={error}
      onClose={onClose}
      onSubmit={save}
    >
      <pre className="small quiet">{letter.error}</pre>
      {columns.map(({ name, type }) => (
        <Field key={name} label={name} hint={`${type}; empty: null`}>
          {(given) => (
            <input
              {...given}
              className="input mono"
              value={texts[name] ?? ""}
              onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
            />
          )}
        </Field>
      ))}
    </Dialog>
  );
}

function written(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function read(text: string, type: string, name: string): unknown {
  if (text === "") return null;
  if (/^(text|string|large_string|utf8|timestamp|date|time|binary|decimal)/.test(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${name}: ${text} is no ${type}`);
  }
}

const rows = (total: number) => `${count(total)} row${total === 1 ? "" : "s"}`;

function summary(done: Shape<"Replay">): string {
  const skipped = Object.entries(done.skipped)
    .filter(([, rows]) => rows > 0)
    .map(([why, rows]) => `${rows} ${why.replace("_", " ")}`);
  const parts = [`${rows(done.rows_in)} ran again, ${rows(done.rows_out)} came into the sinks`];
  if (done.failed) parts.push(`${done.failed} failed again`);
  if (skipped.length) parts.push(`left out: ${skipped.join(", ")}`);
  return `${parts.join("; ")}.`;
}
