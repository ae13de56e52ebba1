import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import { ApiError } from "../api/client";
import { type Finding, type Job, job as jobOf, type Pipeline, pipeline as pipelineOf } from "../api/queries";
import type { Tab } from "../app/router";
import { Failed, Notice, Panel, Tabs, Waiting } from "../design/parts";
import { ago, count, rate } from "../design/words";
import type { NodeNow } from "../graph/graph";
import { LazyGraph } from "../graph/lazy";
import { nameOf } from "../graph/names";
import { useLive } from "../live/live";
import { pressure, rateNow, rowsIn, rowsOut } from "../live/rates";
import { Actions } from "./actions";
import { Checkpoints } from "./checkpoints";
import { FunctionPages } from "./functions";
import { Letters } from "./letters";
import { Log } from "./log";
import { QueryPanel } from "./query";
import { Rows } from "./rows";
import { StateBadge, titleOf, toneOf } from "./states";
import { Timeline } from "./timeline";
import "./workbench.css";

const route = getRouteApi("/pipelines/$id");
/** Operators that call functions of users. */
const CALLS = /Udf|^ArrowValue$/;

export function PipelineDetails() {
  const { id } = route.useParams();
  const pipeline = useQuery(pipelineOf(id));
  const job = useQuery(jobOf(id));
  const gone = [pipeline.error, job.error].find((error) => error instanceof ApiError && error.status === 404);
  if (pipeline.data && job.data && !gone) return <Details key={id} pipeline={pipeline.data} job={job.data} />;
  const error = gone ?? pipeline.error ?? job.error;
  return error ? <Failed error={error} what="The pipeline cannot be shown." /> : <Waiting />;
}

function Details({ pipeline, job }: { pipeline: Pipeline; job: Job }) {
  const { tab = "graph", node } = route.useSearch();
  const navigate = route.useNavigate();
  const live = useLive(pipeline.id);
  const findings = live.data?.findings ?? [];
  const state = live.data?.state ?? job.state;
  // What happens is told by the live counts first: then all that shows the job asks again.
  const client = useQueryClient();
  const happened = live.data && `${live.data.state} ${live.data.generation}`;
  const before = useRef(happened);
  useEffect(() => {
    if (before.current !== undefined && before.current !== happened) {
      void client.invalidateQueries({ queryKey: ["pipelines", pipeline.id] });
    }
    before.current = happened;
  }, [happened, client, pipeline.id]);
  const now = useMemo(() => {
    const last = live.points.at(-1);
    return new Map<number, NodeNow>(
      (last?.nodes ?? []).map(({ node_id: id, held, in_flight }) => [
        id,
        {
          rowsIn: rateNow(live.points, id, rowsIn),
          rowsOut: rateNow(live.points, id, rowsOut),
          pressure: pressure(live.points, id),
          held,
          inFlight: in_flight,
        },
      ]),
    );
  }, [live.points]);
  const functions = useMemo(() => pipeline.graph.nodes.filter((each) => CALLS.test(each.operator)), [pipeline.graph]);
  const shows = pipeline.graph.nodes.some((each) => each.operator.includes("preview"));
  const keepsLetters = /\bdead_letters\b/i.test(pipeline.query);
  const tabs: { name: Tab; title: string }[] = [
    { name: "graph", title: "Graph" },
    ...(functions.length || tab === "functions" ? [{ name: "functions" as const, title: "Functions" }] : []),
    ...(shows ? [{ name: "rows" as const, title: "Rows" }] : []),
    { name: "checkpoints", title: "Checkpoints" },
    { name: "errors", title: "Errors" },
    ...(keepsLetters ? [{ name: "letters" as const, title: "Dead letters" }] : []),
    { name: "log", title: "Log" },
    { name: "query", title: "Query" },
  ];
  const choose = (tab: Tab, node?: number) => void navigate({ search: { tab, node }, replace: true });

  return (
    <div className="stack">
      <div className="head">
        <div className="stack-s">
          <div className="row">
            <h1>{pipeline.name}</h1>
            <StateBadge state={state} />
          </div>
          <div className="row small quiet">
            <span className="mono">{pipeline.id}</span>
            {job.start_time !== null && <span>started {ago(job.start_time)} ago</span>}
            <span>generation {job.run_id}</span>
            {pipeline.scheduler === "flink" && <span>on Apache Flink</span>}
            {Object.entries(pipeline.tags).map(([name, value]) => (
              <Link key={name} to="/pipelines" search={{ labels: [`${name}=${value}`] }} className="tag">
                {name}={value}
              </Link>
            ))}
          </div>
        </div>
        <Actions pipeline={pipeline} job={job} />
      </div>
      {pipeline.waits_for && <Notice tone="warn">Nothing happens yet: {pipeline.waits_for}</Notice>}
      <Findings
        findings={findings}
        onChoose={(finding) => choose(finding.node_id === null ? "errors" : "functions", finding.node_id ?? undefined)}
      />
      <Tabs label="About this pipeline" tabs={tabs} chosen={tab} onChoose={(chosen) => choose(chosen)}>
        {tab === "graph" && (
          <div className="stack">
            <div className="panel" style={{ overflow: "hidden" }}>
              <LazyGraph
                graph={pipeline.graph}
                now={now}
                findings={findings}
                chosen={node}
                onChoose={(id) => choose(functions.some((each) => each.node_id === id) ? "functions" : "graph", id)}
              />
            </div>
            <Nodes pipeline={pipeline} now={now} />
            <Timeline pipeline={pipeline} job={job} />
          </div>
        )}
        {tab === "functions" && (
          <FunctionPages
            pipeline={pipeline}
            nodes={functions}
            chosen={node}
            onChoose={(id) => choose("functions", id)}
            live={live.data}
            points={live.points}
          />
        )}
        {tab === "rows" && (
          <Panel title="Rows">
            <div className="panel-body">
              <Rows id={pipeline.id} job={job} />
            </div>
          </Panel>
        )}
        {tab === "checkpoints" && <Checkpoints pipeline={pipeline} job={job} />}
        {tab === "errors" && <Log pipeline={pipeline} job={job} level="error" />}
        {tab === "log" && <Log pipeline={pipeline} job={job} level="info" />}
        {tab === "letters" && <Letters pipeline={pipeline} job={job} />}
        {tab === "query" && <QueryPanel query={pipeline.query} />}
      </Tabs>
    </div>
  );
}

function Findings({ findings, onChoose }: { findings: readonly Finding[]; onChoose: (finding: Finding) => void }) {
  if (findings.length === 0) return null;
  return (
    <ul className="stack-s" aria-label="What holds it back">
      {findings.map((finding) => (
        <li
          key={`${finding.kind} ${finding.node_id}`}
          className={`notice notice-${toneOf(finding)}`}
          data-kind={finding.kind}
        >
          <div className="grow">
            <strong>
              {finding.name && `${finding.name}: `}
              {titleOf(finding)}.
            </strong>{" "}
            {finding.text}
          </div>
          <button type="button" className="tag" onClick={() => onChoose(finding)}>
            Look at it
          </button>
        </li>
      ))}
    </ul>
  );
}

function Nodes({ pipeline, now }: { pipeline: Pipeline; now: ReadonlyMap<number, NodeNow> }) {
  if (now.size === 0) return null;
  return (
    <div className="panel table-frame">
      <table className="table">
        <caption className="unseen">What passes each node now</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col" className="number">
              Rows/s in
            </th>
            <th scope="col" className="number">
              Rows/s out
            </th>
            <th scope="col" className="number">
              Back-pressure
            </th>
            <th scope="col" className="number">
              In flight
            </th>
            <th scope="col" className="number">
              Held
            </th>
          </tr>
        </thead>
        <tbody>
          {pipeline.graph.nodes.map((node) => {
            const does = now.get(node.node_id);
            return (
              <tr key={node.node_id}>
                <th scope="row">
                  {nameOf(node.description)} <span className="small quiet">{node.operator}</span>
                </th>
                <td className="number">{rate(does?.rowsIn)}</td>
                <td className="number">{rate(does?.rowsOut)}</td>
                <td className="number">{does?.pressure == null ? "–" : `${(does.pressure * 100).toFixed(0)} %`}</td>
                <td className="number">{count(does?.inFlight ?? 0)}</td>
                <td className="number">{count(does?.held ?? 0)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
