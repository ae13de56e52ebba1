// A running function: what it has under way, what it holds and why, how its rows end, and what its runtime complains of.

import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Graph, Live, Pipeline, Point } from "../api/queries";
import { Histogram } from "../charts/histogram";
import { LazyCurves } from "../charts/lazy";
import { Figure, Figures, Panel } from "../design/parts";
import { ago, count, duration, moment, rate, some } from "../design/words";
import { nameOf } from "../graph/names";
import { curve, latencies, nodeOf, outcome, rateNow, retries, rowsIn, rowsOut, states } from "../live/rates";
import "./log.css";

interface Props {
  pipeline: Pipeline;
  nodes: Graph["nodes"];
  chosen: number | undefined;
  onChoose: (node: number) => void;
  live: Live | undefined;
  points: readonly Point[];
}

export function FunctionPages({ pipeline, nodes, chosen, onChoose, live, points }: Props) {
  const node =
    pipeline.graph.nodes.find((each) => each.node_id === chosen) ??
    nodes.find((each) => live?.findings.some((finding) => finding.node_id === each.node_id)) ??
    nodes[0];
  if (node === undefined) {
    return (
      <p className="quiet">
        This query calls no function of yours in an operator of its own: expressions of SQL run in one with the rest.
      </p>
    );
  }
  return (
    <div className="stack">
      {nodes.length > 1 && (
        <fieldset className="row field" style={{ flexDirection: "row" }}>
          <legend className="unseen">Function</legend>
          {nodes.map((each) => (
            <button
              key={each.node_id}
              type="button"
              className="tag"
              aria-pressed={each.node_id === node.node_id}
              onClick={() => onChoose(each.node_id)}
            >
              {nameOf(each.description)}
            </button>
          ))}
        </fieldset>
      )}
      <OneFunction
        key={node.node_id}
        pipeline={pipeline.id}
        id={node.node_id}
        title={nameOf(node.description)}
        live={live}
        points={points}
      />
    </div>
  );
}

const OUTCOMES = [
  { key: "values", name: "values", colour: 1 },
  { key: "errors", name: "errors", colour: 3 },
  { key: "timed_out", name: "timed out", colour: 4 },
] as const;

function OneFunction({
  pipeline,
  id,
  title,
  live,
  points,
}: {
  pipeline: string;
  id: number;
  title: string;
  live: Live | undefined;
  points: readonly Point[];
}) {
  const now = nodeOf(points.at(-1), id);
  const outcomes = useMemo(
    () =>
      curve(
        points,
        id,
        OUTCOMES.map(({ key }) => outcome(key)),
      ),
    [points, id],
  );
  const rows = useMemo(
    () =>
      states(points, id, [
        (node) => node.in_flight,
        (node) => Math.max(0, node.held - node.in_flight - node.backing_off - node.held_by_order),
        (node) => node.backing_off,
        (node) => node.held_by_order,
      ]),
    [points, id],
  );
  const buckets = useMemo(() => latencies(points, id), [points, id]);
  if (now === undefined || live === undefined) {
    return <p className="quiet">It has counted nothing yet: numbers come every two seconds while rows move.</p>;
  }
  const queued = Math.max(0, now.held - now.in_flight - now.backing_off - now.held_by_order);
  const { oldest } = now;
  return (
    <div className="stack">
      <h2>{title}</h2>
      <Figures>
        <Figure name="Rows/s in">{rate(rateNow(points, id, rowsIn))}</Figure>
        <Figure name="Rows/s out">{rate(rateNow(points, id, rowsOut))}</Figure>
        <Figure name="In flight">{count(now.in_flight)}</Figure>
        <Figure name="Queued">{count(queued)}</Figure>
        <Figure name="Backing off" tone={now.backing_off ? "warn" : undefined}>
          {count(now.backing_off)}
        </Figure>
        <Figure name="Held by order" tone={now.held_by_order ? "warn" : undefined}>
          {count(now.held_by_order)}
        </Figure>
        <Figure name="Stuck calls" tone={now.stuck ? "bad" : undefined}>
          {count(now.stuck)}
        </Figure>
        <Figure name="Loop blocked" tone={now.loop_blocked ? "bad" : undefined}>
          {count(now.loop_blocked)} ×
        </Figure>
        <Figure name="Retries/s">{rate(rateNow(points, id, retries))}</Figure>
        <Figure name="Watermark behind">{now.lag === null ? "–" : duration(now.lag)}</Figure>
      </Figures>
      <p role="status">
        {oldest ? (
          <>
            The oldest row is <strong>row {count(oldest.row)}</strong> of <span className="mono">{oldest.file}</span>,
            for <strong>{ago(oldest.since, live.now)}</strong>
            {now.held_by_order > 0 && <>; {count(now.held_by_order)} rows that have ended wait for it</>}.
          </>
        ) : (
          <span className="quiet">No row waits in it.</span>
        )}
      </p>
      <div className="function-curves">
        <div className="panel panel-body">
          <LazyCurves
            title="Rows/s by outcome"
            names={OUTCOMES.map(({ name }) => name)}
            colours={OUTCOMES.map(({ colour }) => colour)}
            curve={outcomes}
            say={rate}
          />
        </div>
        <div className="panel panel-body">
          <LazyCurves
            title="Rows in it"
            names={["in flight", "queued", "backing off", "held by order"]}
            colours={[1, 2, 4, 5]}
            curve={rows}
            say={some}
          />
        </div>
        <div className="panel panel-body">
          <Histogram buckets={buckets} longest={now.latency_max} />
        </div>
        <Panel title="Since it began">
          <dl className="panel-body pairs">
            {Object.entries(now.outcomes).map(([name, rows]) => (
              <div key={name}>
                <dt>
                  {name === "dead_letters" ? (
                    <Link to="/pipelines/$id" params={{ id: pipeline }} search={{ tab: "letters" }}>
                      dead letters
                    </Link>
                  ) : (
                    name.replace("_", " ")
                  )}
                </dt>
                <dd>{count(rows)}</dd>
              </div>
            ))}
            <div>
              <dt>retries</dt>
              <dd>{count(now.retries)}</dd>
            </div>
          </dl>
        </Panel>
      </div>
      <Panel title="What its runtime says">
        {live.complaints.length === 0 ? (
          <p className="panel-body quiet">
            Nothing. Stuck calls and calls that block the event loop are told here, with their stack.
          </p>
        ) : (
          <ol className="log">
            {live.complaints.map((complaint) => (
              <li key={`${complaint.at} ${complaint.text}`} data-kind={complaint.kind}>
                <time className="small quiet">{moment(complaint.at)}</time>
                <div className="log-text">{complaint.text}</div>
                {complaint.stack && <pre tabIndex={0}>{complaint.stack}</pre>}
              </li>
            ))}
          </ol>
        )}
      </Panel>
    </div>
  );
}
