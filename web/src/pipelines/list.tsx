import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type OverviewRow, overview } from "../api/queries";
import { useMay } from "../app/may";
import { Failed, useSettled, Waiting } from "../design/parts";
import { ago, count, duration, rate } from "../design/words";
import { StateBadge, titleOf, toneOf } from "./states";
import "./list.css";

const route = getRouteApi("/pipelines");
const STEP = 50;

export function PipelineList() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useMay("run");
  const [typed, setTyped] = useState(search.named ?? "");
  const named = useSettled(typed, 200);
  const [limit, setLimit] = useState(STEP);
  const { states = [], labels = [] } = search;
  const asked = { named, states, labels, limit };
  const { data, error, isLoading } = useQuery(overview(asked));
  useEffect(() => {
    void navigate({ search: (now) => ({ ...now, named: named || undefined }), replace: true });
  }, [named, navigate]);

  const toggled = (all: string[], one: string) => {
    const others = all.filter((each) => each !== one);
    const now = others.length === all.length ? [...all, one] : others;
    return now.length ? now : undefined;
  };
  const choose = (what: "states" | "labels", one: string) =>
    void navigate({ search: (now) => ({ ...now, [what]: toggled(now[what] ?? [], one) }), replace: true });

  const filtered = named !== "" || states.length > 0 || labels.length > 0;
  const known = Object.entries(data?.states ?? {}).sort();
  return (
    <div className="stack">
      <div className="head">
        <h1>Pipelines</h1>
        {mayRun && (
          <Link to="/pipelines/new" search={{}} className="button button-main">
            New pipeline
          </Link>
        )}
      </div>
      <div className="row">
        <input
          className="input list-search"
          type="search"
          placeholder="Search by name"
          aria-label="Search by name"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        {known.map(([state, total]) => (
          <button
            key={state}
            type="button"
            className="tag"
            aria-pressed={states.includes(state)}
            onClick={() => choose("states", state)}
          >
            {state} {count(total)}
          </button>
        ))}
        {labels.map((label) => (
          <button key={label} type="button" className="tag" aria-pressed onClick={() => choose("labels", label)}>
            {label} ✕
          </button>
        ))}
      </div>
      {error && !data && <Failed error={error} what="The pipelines cannot be shown." />}
      {isLoading && <Waiting />}
      {data && data.data.length === 0 && (filtered ? <p className="quiet">No pipeline fits.</p> : <NoPipelines />)}
      {data && data.data.length > 0 && (
        <div className="panel table-frame">
          <table className="table table-hover list">
            <caption className="unseen">Pipelines, the newest first</caption>
            <thead>
              <tr>
                <th scope="col">Pipeline</th>
                <th scope="col">State</th>
                <th scope="col" className="number">
                  Rows/s in
                </th>
                <th scope="col" className="number">
                  Rows/s out
                </th>
                <th scope="col" className="number">
                  Lag
                </th>
                <th scope="col">What holds it back</th>
              </tr>
            </thead>
            <tbody>
              {data.data.map((row) => (
                <Row key={row.id} row={row} chosen={labels} onLabel={(label) => choose("labels", label)} />
              ))}
            </tbody>
          </table>
          {data.total > data.data.length && (
            <div className="panel-body row">
              <span className="quiet">
                {count(data.data.length)} of {count(data.total)}
              </span>
              <button type="button" className="button" onClick={() => setLimit(limit + STEP)}>
                Show more
              </button>
            </div>
          )}
        </div>
      )}
    </div>
  );
}

function Row({ row, chosen, onLabel }: { row: OverviewRow; chosen: string[]; onLabel: (label: string) => void }) {
  const why = row.finding;
  return (
    <tr>
      <th scope="row">
        <Link to="/pipelines/$id" params={{ id: row.id }} search={{}}>
          {row.name}
        </Link>
        <div className="row">
          {Object.entries(row.tags).map(([name, value]) => {
            const label = `${name}=${value}`;
            return (
              <button
                key={label}
                type="button"
                className="tag"
                aria-pressed={chosen.includes(label)}
                onClick={() => onLabel(label)}
              >
                {label}
              </button>
            );
          })}
        </div>
      </th>
      <td>
        <StateBadge state={row.state} />
        <div className="small quiet">for {ago(row.state_since)}</div>
      </td>
      <td className="number" data-name="in/s">
        {rate(row.rows_in)}
      </td>
      <td className="number" data-name="out/s">
        {rate(row.rows_out)}
      </td>
      <td className="number" data-name="lag">
        {duration(row.lag)}
      </td>
      <td className="list-why">
        {row.waits_for && <span>Waits: {row.waits_for}</span>}
        {why && (
          <Link
            to="/pipelines/$id"
            params={{ id: row.id }}
            search={why.node_id === null ? { tab: "errors" } : { tab: "functions", node: why.node_id }}
            className={`why why-${toneOf(why)}`}
            title={why.text}
          >
            <strong>
              {why.name && `${why.name}: `}
              {titleOf(why)}
            </strong>
            <span>{why.text}</span>
          </Link>
        )}
        {!why && row.failure_reason && (
          <span className="why why-bad" title={row.failure_reason.error}>
            <span>{row.failure_reason.error}</span>
          </span>
        )}
      </td>
    </tr>
  );
}

function NoPipelines() {
  const mayRun = useMay("run");
  return (
    <div className="panel empty">
      <h2>No pipeline yet</h2>
      <p>
        A pipeline is a query that runs on: it reads a stream, calls your functions for its rows, and writes what comes
        out. Three steps lead to the first one:
      </p>
      <ol className="stack-s steps">
        <li>
          <Link to="/functions/new">Write a function</Link> in Python, Rust or C, and try it on a few rows.
        </li>
        <li>
          <Link to="/connections">Connect a table</Link>, or take <code>impulse</code>, which counts.
        </li>
        <li>
          {mayRun ? (
            <Link to="/pipelines/new" search={{}}>
              Write the query
            </Link>
          ) : (
            "Write the query"
          )}
          , look at its rows in a preview, and start it.
        </li>
      </ol>
    </div>
  );
}
