// Checkpoints with what each node needed, and the way back to one of them.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import { checkpointParts, checkpoints, type Job, type Pipeline, restorable } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Dialog, Failed, Field, Notice, Panel, useToast, Waiting } from "../design/parts";
import { bytes, duration, moment } from "../design/words";
import { nameOf } from "../graph/names";
import "./log.css";

interface Props {
  pipeline: Pipeline;
  job: Job;
}

type Target = { epoch: number } | { savepoint: string };

export function Checkpoints({ pipeline, job }: Props) {
  const mayRun = useMay("run");
  const client = useQueryClient();
  const toast = useToast();
  const taken = useQuery(checkpoints(pipeline.id, job.id));
  const back = useQuery(restorable(pipeline.id, job.id));
  const [epoch, setEpoch] = useState<number | null>(null);
  const [target, setTarget] = useState<Target | null>(null);
  const [naming, setNaming] = useState(false);
  const path = { path: { id: pipeline.id, job_id: job.id } };
  const removal = useMutation({
    mutationFn: (name: string) =>
      ask(
        api.DELETE("/v1/pipelines/{id}/jobs/{job_id}/savepoints/{name}", { params: { path: { ...path.path, name } } }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ["pipelines", pipeline.id, "checkpoints"] }),
    onError: (error) => toast("bad", said(error)),
  });
  if (taken.error && !taken.data) return <Failed error={taken.error} what="The checkpoints cannot be shown." />;
  if (!taken.data) return <Waiting />;
  const newest = taken.data.data.toReversed();
  const retained = new Set(back.data?.checkpoints.map((each) => each.epoch));
  const shown = epoch ?? newest[0]?.epoch;
  return (
    <div className="stack">
      <Panel
        title="Savepoints"
        actions={
          mayRun && (
            <Button onClick={() => setNaming(true)} disabled={newest.length === 0}>
              Keep the latest checkpoint…
            </Button>
          )
        }
      >
        {back.error && <Failed error={back.error} what="Where it can go back to is not known." />}
        {back.data?.savepoints.length ? (
          <div className="table-frame">
            <table className="table">
              <caption className="unseen">Savepoints</caption>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Taken</th>
                  <th scope="col" className="number">
                    Size
                  </th>
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {back.data.savepoints.map((savepoint) => (
                  <tr key={savepoint.name}>
                    <th scope="row">{savepoint.name}</th>
                    <td>
                      epoch {savepoint.epoch}
                      {savepoint.time && <span className="small quiet"> {savepoint.time}</span>}
                    </td>
                    <td className="number">{bytes(savepoint.bytes)}</td>
                    <td>
                      {mayRun && (
                        <div className="row" style={{ justifyContent: "flex-end" }}>
                          <Button onClick={() => setTarget({ savepoint: savepoint.name })}>Go back…</Button>
                          <Button look="bad" onClick={() => removal.mutate(savepoint.name)}>
                            Remove
                          </Button>
                        </div>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <p className="panel-body quiet">
            A savepoint is a copy of a checkpoint with a name. It stays until you remove it: take one before an upgrade.
          </p>
        )}
      </Panel>
      <Panel title="Checkpoints">
        {newest.length === 0 ? (
          <p className="panel-body quiet">There is none yet. A job that reads nothing takes none.</p>
        ) : (
          <section
            className="table-frame"
            style={{ maxHeight: "24rem", overflowY: "auto" }}
            tabIndex={0}
            aria-label="Checkpoints, the newest first"
          >
            <table className="table table-hover">
              <thead>
                <tr>
                  <th scope="col">Epoch</th>
                  <th scope="col">Finished</th>
                  <th scope="col" className="number">
                    Took
                  </th>
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {newest.map((checkpoint) => (
                  <tr key={checkpoint.epoch}>
                    <th scope="row">
                      <button
                        type="button"
                        className="tag"
                        aria-pressed={checkpoint.epoch === shown}
                        onClick={() => setEpoch(checkpoint.epoch)}
                      >
                        {checkpoint.epoch}
                      </button>{" "}
                      {checkpoint.checkpoint_type === "stopping" && <span className="small quiet">at a stop</span>}
                    </th>
                    <td>{checkpoint.finish_time === null ? "under way" : moment(checkpoint.finish_time)}</td>
                    <td className="number">
                      {checkpoint.finish_time === null
                        ? "–"
                        : duration((checkpoint.finish_time - checkpoint.start_time) / 1e6)}
                    </td>
                    <td className="number">
                      {mayRun && retained.has(checkpoint.epoch) && (
                        <Button onClick={() => setTarget({ epoch: checkpoint.epoch })}>Go back…</Button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        )}
      </Panel>
      {shown !== undefined && <Parts pipeline={pipeline} job={job} epoch={shown} />}
      {naming && <Keep pipeline={pipeline} job={job} close={() => setNaming(false)} />}
      {target && (
        <GoBack
          pipeline={pipeline}
          job={job}
          target={target}
          sinks={back.data?.sinks ?? []}
          close={() => setTarget(null)}
        />
      )}
    </div>
  );
}

function Parts({ pipeline, job, epoch }: Props & { epoch: number }) {
  const { data, error } = useQuery(checkpointParts(pipeline.id, job.id, epoch));
  const groups = data?.data ?? [];
  const spans = groups.flatMap((group) => group.subtasks.flatMap((subtask) => subtask.event_spans));
  const first = Math.min(...spans.map((span) => span.start_time));
  const last = Math.max(...spans.map((span) => span.finish_time), first + 1);
  const names = new Map(
    pipeline.graph.nodes.map((node) => [`${node.operator}_${node.node_id}`, nameOf(node.description)]),
  );
  return (
    <Panel title={`Epoch ${epoch}, by operator`}>
      {error ? (
        <Failed error={error} what="" />
      ) : (
        <div className="panel-body bars">
          {groups.map((group) => {
            const own = group.subtasks.flatMap((subtask) => subtask.event_spans).filter((span) => span.finish_time > 0);
            const [from, to] = [
              Math.min(...own.map((span) => span.start_time)),
              Math.max(...own.map((span) => span.finish_time)),
            ];
            return (
              <div key={group.operator_id} style={{ display: "contents" }}>
                <span>{names.get(group.operator_id) ?? group.operator_id}</span>
                <span className="bar">
                  {own.length > 0 && (
                    <i
                      style={{
                        left: `${((from - first) / (last - first)) * 100}%`,
                        width: `${((to - from) / (last - first)) * 100}%`,
                      }}
                    />
                  )}
                </span>
                <span className="small number">
                  {bytes(group.bytes)}, {own.length > 0 ? duration((to - from) / 1e6) : "–"}
                </span>
              </div>
            );
          })}
        </div>
      )}
    </Panel>
  );
}

function Keep({ pipeline, job, close }: Props & { close: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const keep = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/v1/pipelines/{id}/jobs/{job_id}/savepoints", {
          params: { path: { id: pipeline.id, job_id: job.id } },
          body: { name },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["pipelines", pipeline.id, "checkpoints"] });
      close();
    },
  });
  return (
    <Dialog
      title="Keep the latest checkpoint"
      submit="Keep it"
      busy={keep.isPending}
      error={keep.error}
      onClose={close}
      onSubmit={() => keep.mutate()}
    >
      <Field label="Name of the savepoint" hint="Letters, digits, _ . and -">
        {(given) => (
          <input
            {...given}
            className="input"
            required
            pattern="[A-Za-z][A-Za-z0-9_.\-]*"
            maxLength={100}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}

const LATER = {
  none: "keeps no rows",
  withdrawn: "takes back the rows that came later",
  overwritten: "keeps later rows until rows with the same key come again",
  doubled: "keeps later rows, and gets them again",
} as const;

function GoBack(props: Props & { target: Target; sinks: Shape<"LaterRows">[]; close: () => void }) {
  const client = useQueryClient();
  const [accepts, setAccepts] = useState(false);
  const doubled = props.sinks.filter((sink) => sink.later_rows === "doubled").map((sink) => sink.sink);
  const restore = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/v1/pipelines/{id}/jobs/{job_id}/restore", {
          params: { path: { id: props.pipeline.id, job_id: props.job.id } },
          body: { ...props.target, accept_doubles: accepts ? doubled : [] },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["pipelines"] });
      props.close();
    },
  });
  const name = "epoch" in props.target ? `epoch ${props.target.epoch}` : props.target.savepoint;
  return (
    <Dialog
      title={`Go back to ${name}`}
      submit="Go back"
      bad
      busy={restore.isPending}
      error={restore.error}
      onClose={props.close}
      onSubmit={() => restore.mutate()}
    >
      <p>The job ends at once, and goes on from there. What came later is given up:</p>
      <ul className="stack-s">
        {props.sinks.map((sink) => (
          <li key={sink.sink}>
            <strong>{sink.sink}</strong> {LATER[sink.later_rows]}
          </li>
        ))}
      </ul>
      {doubled.length > 0 && (
        <label className="check">
          <input type="checkbox" required checked={accepts} onChange={(event) => setAccepts(event.target.checked)} />
          <span>{doubled.join(", ")} may have rows twice.</span>
        </label>
      )}
      {props.sinks.length === 0 && <Notice tone="warn">What its sinks do with later rows is not known.</Notice>}
    </Dialog>
  );
}
