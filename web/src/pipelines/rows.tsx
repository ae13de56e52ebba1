// The rows that a job shows, as they come: the latest ones. The stream goes on where it was when the API was away.

import { useEffect, useRef, useState } from "react";
import type { Job } from "../api/queries";
import { count } from "../design/words";

const SHOWN = 200;
const STARTING = ["Created", "Compiling", "Scheduling", "Recovering", "Restarting", "Rescaling"];

type Row = Record<string, unknown>;

interface Seen {
  rows: { number: number; row: Row }[];
  total: number;
}

const NONE: Seen = { rows: [], total: 0 };

export function Rows({ id, job }: { id: string; job: Job }) {
  const [seen, setSeen] = useState<Seen>(NONE);
  const [ended, setEnded] = useState(false);
  const waiting = useRef<Seen["rows"]>([]);
  const open = !STARTING.includes(job.state);
  const jobId = job.id;

  useEffect(() => {
    if (!open) return;
    let number = 0;
    setSeen(NONE);
    setEnded(false);
    waiting.current = [];
    const stream = new EventSource(`/api/v1/pipelines/${id}/jobs/${jobId}/output`);
    stream.onmessage = (event) => {
      const { batch } = JSON.parse(event.data) as { batch: string };
      for (const row of JSON.parse(batch) as Row[]) waiting.current.push({ number: number++, row });
    };
    stream.addEventListener("end", () => {
      setEnded(true);
      stream.close();
    });
    // Rows may come by the thousand: they are drawn a few times in a second.
    const timer = setInterval(() => {
      const more = waiting.current;
      if (more.length === 0) return;
      waiting.current = [];
      setSeen((now) => ({ rows: [...now.rows, ...more].slice(-SHOWN), total: now.total + more.length }));
    }, 250);
    return () => {
      stream.close();
      clearInterval(timer);
    };
  }, [id, jobId, open]);

  const columns = [...new Set(seen.rows.flatMap(({ row }) => Object.keys(row)))];
  const numeric = new Set(columns.filter((column) => seen.rows.some(({ row }) => typeof row[column] === "number")));
  return (
    <div className="stack-s">
      <p className="small quiet" role="status">
        {!open
          ? `The job is ${job.state}: rows come when it runs.`
          : seen.total === 0
            ? ended
              ? "It has ended without a row."
              : "Waiting for the first row…"
            : `${count(seen.total)} rows${ended ? ", and no more" : ""}${seen.total > SHOWN ? `; the last ${SHOWN} are shown` : ""}`}
      </p>
      {seen.rows.length > 0 && (
        <section className="table-frame rows" tabIndex={0} aria-label="The latest rows">
          <table className="table">
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column} scope="col" className={numeric.has(column) ? "number" : ""}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {seen.rows.toReversed().map(({ number, row }) => (
                <tr key={number}>
                  {columns.map((column) => (
                    <td key={column} className={numeric.has(column) ? "number" : ""}>
                      {shown(row[column])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

export function shown(value: unknown) {
  if (value === null || value === undefined) return <span className="quiet">null</span>;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
