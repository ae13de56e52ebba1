// What the job's log says: errors with their tracebacks, or everything, also what functions print.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Job, log, type Pipeline } from "../api/queries";
import { Badge, Button, Failed, Waiting } from "../design/parts";
import { moment } from "../design/words";
import "./log.css";

const STEP = 50;
const TONES = { error: "bad", warn: "warn", info: "idle" } as const;

export function Log({ pipeline, job, level }: { pipeline: Pipeline; job: Job; level: "error" | "info" }) {
  const [limit, setLimit] = useState(STEP);
  const { data, error } = useQuery(log(pipeline.id, job.id, level, limit));
  if (error && !data) return <Failed error={error} what="The log cannot be read." />;
  if (!data) return <Waiting />;
  return (
    <div className="stack-s">
      {job.failure_reason && level === "error" && job.state !== "Running" && (
        <div className="notice notice-bad">
          <pre className="grow">{job.failure_reason.error}</pre>
        </div>
      )}
      {data.data.length === 0 && (
        <p className="quiet">{level === "error" ? "There were no errors." : "The log is empty."}</p>
      )}
      <ol className="panel log">
        {data.data.map((entry) => {
          const [first = "", ...others] = entry.message.split("\n");
          const more = [...others, entry.details === entry.message ? "" : entry.details].join("\n").trim();
          return (
            <li key={entry.id}>
              <div className="row">
                <time className="small quiet">{moment(entry.created_at)}</time>
                <Badge tone={TONES[entry.level]}>{entry.level}</Badge>
                {entry.operator_id && <span className="tag">{entry.operator_id}</span>}
                {entry.error_domain && <span className="small quiet">{DOMAINS[entry.error_domain]}</span>}
              </div>
              <div className="log-text">{first}</div>
              {more && (
                <details>
                  <summary>{more.includes("Traceback") ? "Traceback" : "Details"}</summary>
                  <pre tabIndex={0}>{more}</pre>
                </details>
              )}
            </li>
          );
        })}
      </ol>
      {data.hasMore && (
        <div>
          <Button onClick={() => setLimit(limit + STEP)}>Show older ones</Button>
        </div>
      )}
    </div>
  );
}

const DOMAINS = {
  user: "of the query or its functions",
  external: "of something outside",
  internal: "of the engine",
} as const;
