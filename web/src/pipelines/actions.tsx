// What can be done with a pipeline now. Who may not run pipelines sees none of it.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import type { Job, Pipeline } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Dialog, Field, Menu, MenuItem, useToast } from "../design/parts";
import { labelsOf, textOf } from "./labels";
import { ENDED } from "./states";

type Asked = "stop" | "restart" | "rescale" | "delete" | "labels" | null;

export function Actions({ pipeline, job }: { pipeline: Pipeline; job: Job }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const mayRun = useMay("run");
  const [asked, setAsked] = useState<Asked>(null);
  const path = { params: { path: { id: pipeline.id } } };
  const again = () => client.invalidateQueries({ queryKey: ["pipelines"] });

  const patch = useMutation({
    mutationFn: (body: Shape<"PipelinePatch">) => ask(api.PATCH("/v1/pipelines/{id}", { ...path, body })),
    onSuccess: async () => {
      setAsked(null);
      await again();
    },
    onError: (error) => asked === null && toast("bad", said(error)),
  });
  const restart = useMutation({
    mutationFn: (body: Shape<"PipelineRestart">) => ask(api.POST("/v1/pipelines/{id}/restart", { ...path, body })),
    onSuccess: async () => {
      setAsked(null);
      await again();
    },
  });
  const remove = useMutation({
    mutationFn: () => ask(api.DELETE("/v1/pipelines/{id}", path)),
    onSuccess: async () => {
      toast("good", `${pipeline.name} is deleted.`);
      await navigate({ to: "/pipelines", search: {} });
      await again();
    },
  });

  if (!mayRun) return null;
  const ended = ENDED.includes(job.state);
  const close = () => setAsked(null);
  return (
    <div className="row">
      {ended ? (
        <Button
          look="main"
          disabled={job.state === "Finished" || pipeline.stop === "none" || patch.isPending}
          onClick={() => patch.mutate({ stop: "none" })}
          hidden={job.state === "Failed" && pipeline.stop === "none"}
        >
          Start
        </Button>
      ) : (
        <Button onClick={() => setAsked("stop")}>{pipeline.stop === "none" ? "Stop…" : "Stopping…"}</Button>
      )}
      <Button disabled={job.state === "Finished"} onClick={() => setAsked("restart")}>
        Restart…
      </Button>
      <Menu label="More">
        <MenuItem onClick={() => setAsked("rescale")}>Rescale…</MenuItem>
        <MenuItem onClick={() => setAsked("labels")}>Labels…</MenuItem>
        <MenuItem
          disabled={job.state === "Finished"}
          onClick={() => void navigate({ to: "/pipelines/$id/edit", params: { id: pipeline.id } })}
        >
          Edit the query
        </MenuItem>
        <MenuItem onClick={() => void navigate({ to: "/pipelines/new", search: { from: pipeline.id } })}>Copy</MenuItem>
        <MenuItem disabled={!ended} onClick={() => setAsked("delete")}>
          Delete… {ended ? "" : "(stop it first)"}
        </MenuItem>
      </Menu>
      {asked === "stop" && (
        <Stop close={close} error={patch.error} busy={patch.isPending} stop={(how) => patch.mutate({ stop: how })} />
      )}
      {asked === "restart" && (
        <Restart
          close={close}
          error={restart.error}
          busy={restart.isPending}
          restart={(body) => restart.mutate(body)}
        />
      )}
      {asked === "rescale" && (
        <Rescale
          pipeline={pipeline}
          close={close}
          error={patch.error}
          busy={patch.isPending}
          change={(body) => patch.mutate(body)}
        />
      )}
      {asked === "labels" && (
        <Labels
          pipeline={pipeline}
          close={close}
          error={patch.error}
          busy={patch.isPending}
          change={(tags) => patch.mutate({ tags })}
        />
      )}
      {asked === "delete" && (
        <Dialog
          title={`Delete ${pipeline.name}`}
          submit="Delete it"
          bad
          busy={remove.isPending}
          error={remove.error}
          onClose={close}
          onSubmit={() => remove.mutate()}
        >
          <p>Its job, its checkpoints and its savepoints go, too. What is in its sinks stays.</p>
        </Dialog>
      )}
    </div>
  );
}

interface Common {
  close: () => void;
  error: unknown;
  busy: boolean;
}

const WAYS: { how: Exclude<Shape<"Pipeline">["stop"], "none">; name: string; text: string }[] = [
  { how: "checkpoint", name: "With a checkpoint", text: "Rows in flight may end; a later start goes on from here." },
  { how: "immediate", name: "At once", text: "Without a checkpoint: rows since the last one are read again." },
  { how: "force", name: "Kill", text: "Ends the worker's process, whatever it does." },
];

function Stop({ close, error, busy, stop }: Common & { stop: (how: (typeof WAYS)[number]["how"]) => void }) {
  const [how, setHow] = useState<(typeof WAYS)[number]["how"]>("checkpoint");
  return (
    <Dialog
      title="Stop the pipeline"
      submit="Stop it"
      bad
      busy={busy}
      error={error}
      onClose={close}
      onSubmit={() => stop(how)}
    >
      <fieldset className="field">
        <legend className="unseen">How</legend>
        {WAYS.map((way) => (
          <label key={way.how} className="check">
            <input type="radio" name="how" checked={how === way.how} onChange={() => setHow(way.how)} />
            <span>
              <strong>{way.name}.</strong> <span className="quiet">{way.text}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </Dialog>
  );
}

function Restart({ close, error, busy, restart }: Common & { restart: (body: Shape<"PipelineRestart">) => void }) {
  const [replan, setReplan] = useState(false);
  const [force, setForce] = useState(false);
  const [discard, setDiscard] = useState(false);
  return (
    <Dialog
      title="Restart the pipeline"
      submit="Restart it"
      bad={discard}
      busy={busy}
      error={error}
      onClose={close}
      onSubmit={() =>
        restart({ ...(replan && { replan }), ...(force && { force }), ...(discard && { discard_state: true }) })
      }
    >
      <p className="quiet">It goes on from the last checkpoint.</p>
      <label className="check">
        <input type="checkbox" checked={replan} onChange={(event) => setReplan(event.target.checked)} />
        <span>
          With the saved functions and tables as they are now.{" "}
          <span className="quiet">Otherwise it keeps those it has.</span>
        </span>
      </label>
      <label className="check">
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} />
        <span>
          Without waiting for a checkpoint. <span className="quiet">Rows since the last one are read again.</span>
        </span>
      </label>
      <label className="check">
        <input type="checkbox" checked={discard} onChange={(event) => setDiscard(event.target.checked)} />
        <span>
          From the beginning, giving up the state. <span className="quiet">Rows are read, and come, again.</span>
        </span>
      </label>
    </Dialog>
  );
}

function Rescale({
  pipeline,
  close,
  error,
  busy,
  change,
}: Common & { pipeline: Pipeline; change: (body: Shape<"PipelinePatch">) => void }) {
  const now = Math.max(1, ...pipeline.graph.nodes.map((node) => node.parallelism));
  const [parallelism, setParallelism] = useState(String(now));
  const [interval, setInterval] = useState(String(pipeline.checkpoint_interval_micros / 1e6));
  return (
    <Dialog
      title="Rescale the pipeline"
      submit="Change it"
      busy={busy}
      error={error}
      onClose={close}
      onSubmit={() =>
        change({ parallelism: Number(parallelism), checkpoint_interval_micros: Math.round(Number(interval) * 1e6) })
      }
    >
      <p className="quiet">A running job stops with a checkpoint, and starts again.</p>
      <Field label="Parallelism">
        {(given) => (
          <input
            {...given}
            className="input"
            type="number"
            min={1}
            max={1024}
            required
            value={parallelism}
            onChange={(event) => setParallelism(event.target.value)}
          />
        )}
      </Field>
      <Field label="Seconds between two checkpoints">
        {(given) => (
          <input
            {...given}
            className="input"
            type="number"
            min={1}
            max={86_400}
            required
            value={interval}
            onChange={(event) => setInterval(event.target.value)}
          />
        )}
      </Field>
    </Dialog>
  );
}

function Labels({
  pipeline,
  close,
  error,
  busy,
  change,
}: Common & { pipeline: Pipeline; change: (tags: Record<string, string>) => void }) {
  const [labels, setLabels] = useState(textOf(pipeline.tags));
  return (
    <Dialog
      title="Labels"
      submit="Save"
      busy={busy}
      error={error}
      onClose={close}
      onSubmit={() => change(labelsOf(labels))}
    >
      <Field label="Labels" hint="name=value, separated by commas">
        {(given) => (
          <input {...given} className="input" value={labels} onChange={(event) => setLabels(event.target.value)} />
        )}
      </Field>
    </Dialog>
  );
}
