// What became of a job, the newest first: when it ran, when and why it did not.

import { useQuery } from "@tanstack/react-query";
import { type Job, log, type Pipeline } from "../api/queries";
import { Panel } from "../design/parts";
import { moment } from "../design/words";
import "./log.css";

const STATES = ["Running", "Stopped", "Finished", "Failed"];
const SHOWN = 12;

export function Timeline({ pipeline, job }: { pipeline: Pipeline; job: Job }) {
  const { data } = useQuery({ ...log(pipeline.id, job.id, "info", 60), refetchInterval: 10_000 });
  const entries = (data?.data ?? [])
    .filter((entry) => entry.level !== "info" || STATES.includes(entry.message))
    .slice(0, SHOWN);
  return (
    <Panel title="What became of it">
      <div className="panel-body">
        <ol className="times">
          {entries.map((entry) => (
            <li key={entry.id} data-level={entry.level} data-state={entry.message}>
              <time className="small quiet">{moment(entry.created_at)}</time> {entry.message.split("\n")[0]}
            </li>
          ))}
          <li>
            <time className="small quiet">{moment(pipeline.created_at)}</time> Created
          </li>
        </ol>
      </div>
    </Panel>
  );
}
