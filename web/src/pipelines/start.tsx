// How a pipeline is to run, just before it does.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { api, ask } from "../api/client";
import { identity, type Pipeline, type Scheduler } from "../api/queries";
import { Dialog, Field } from "../design/parts";
import { labelsOf, textOf } from "./labels";

interface Props {
  name: string;
  query: string;
  copied: Pipeline | undefined;
  onClose: () => void;
  onStarted: () => void;
}

const PLACES: Record<Scheduler, string> = { local: "on this machine", flink: "on Apache Flink" };
const ISOLATED = /\bset\s+isolation\b/i;

export function StartDialog({ name: proposed, query, copied, onClose, onStarted }: Props) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState(proposed);
  const [parallelism, setParallelism] = useState("1");
  const [interval, setInterval] = useState(copied ? String(copied.checkpoint_interval_micros / 1e6) : "");
  const [isolation, setIsolation] = useState("none");
  const schedulers = useQuery(identity).data?.schedulers ?? [];
  const [chosen, setChosen] = useState(copied?.scheduler as Scheduler | undefined);
  const scheduler = chosen ?? schedulers[0];
  const [labels, setLabels] = useState(textOf(copied?.tags ?? {}));
  // A request that is sent again, because no answer came, makes no second pipeline.
  const key = useRef(`${Date.now()}-${Math.random()}`);
  const says = ISOLATED.test(query);
  const start = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/v1/pipelines", {
          params: { header: { "Idempotency-Key": key.current } },
          body: {
            name,
            query: isolation === "none" || says ? query : `SET isolation = '${isolation}';\n${query}`,
            parallelism: Number(parallelism),
            checkpoint_interval_micros: interval === "" ? null : Math.round(Number(interval) * 1e6),
            scheduler: scheduler ?? null,
            tags: labelsOf(labels),
            udfs: copied?.udfs.length ? copied.udfs : null,
          },
        }),
      ),
    onSuccess: async (made) => {
      onStarted();
      await client.invalidateQueries({ queryKey: ["pipelines"] });
      await navigate({ to: "/pipelines/$id", params: { id: made.id }, search: {} });
    },
    onError: () => {
      key.current = `${Date.now()}-${Math.random()}`;
    },
  });
  return (
    <Dialog
      title="Start a pipeline"
      submit="Start"
      busy={start.isPending}
      error={start.error}
      onClose={onClose}
      onSubmit={() => start.mutate()}
    >
      <Field label="Name">
        {(given) => (
          <input
            {...given}
            className="input"
            required
            maxLength={200}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      {schedulers.length > 1 && (
        <Field
          label="Where it runs"
          hint={
            scheduler === "flink"
              ? "On the machines of the Flink cluster, with its checkpoints."
              : "In a worker process of its own, or in a thread of the controller, as the cluster says."
          }
        >
          {(given) => (
            <select
              {...given}
              className="select"
              value={scheduler}
              onChange={(event) => setChosen(event.target.value as Scheduler)}
            >
              {schedulers.map((each) => (
                <option key={each} value={each}>
                  {PLACES[each]}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="Parallelism" hint="Slices of the stream, each in a thread of its worker. It can be changed later.">
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
      <Field label="Seconds between two checkpoints" hint="Empty: as the query or the cluster says.">
        {(given) => (
          <input
            {...given}
            className="input"
            type="number"
            min={1}
            max={86_400}
            value={interval}
            onChange={(event) => setInterval(event.target.value)}
          />
        )}
      </Field>
      <Field
        label="Isolation of functions"
        hint={
          says
            ? "The query says it: SET isolation = …"
            : "In a process of its own, a function that crashes costs its row, not the job. Each batch takes longer by some microseconds."
        }
      >
        {(given) => (
          <select
            {...given}
            className="select"
            disabled={says}
            value={isolation}
            onChange={(event) => setIsolation(event.target.value)}
          >
            <option value="none">in the job's worker</option>
            <option value="process">in processes of their own</option>
          </select>
        )}
      </Field>
      <Field label="Labels" hint="name=value, separated by commas: lists and actions can choose by them.">
        {(given) => (
          <input {...given} className="input" value={labels} onChange={(event) => setLabels(event.target.value)} />
        )}
      </Field>
    </Dialog>
  );
}
