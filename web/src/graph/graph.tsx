// The plan of a query: boxes and arrows, from left to right where there is room, with what passes them.

import dagre from "@dagrejs/dagre";
import { Background, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Finding, Graph } from "../api/queries";
import { rate, share, some } from "../design/words";
import { nameOf } from "./names";
import "./graph.css";

/** What a node does now. */
export interface NodeNow {
  rowsIn: number | null;
  rowsOut: number | null;
  pressure: number | null;
  held: number;
  inFlight: number;
}

interface Props {
  graph: Graph;
  now?: ReadonlyMap<number, NodeNow>;
  findings?: readonly Finding[];
  chosen?: number | undefined;
  onChoose?: (node: number) => void;
}

interface Box extends Record<string, unknown> {
  operator: string;
  description: string;
  parallelism: number;
  now: NodeNow | undefined;
  finding: Finding | undefined;
  chosen: boolean;
  down: boolean;
}

const WIDTH = 144;
const HEIGHT = 80;
/** The share of back-pressure from which on an arrow says it: less is noise, and each label is measured. */
const TOLD = 0.1;
/** Pixels below which a graph goes from top to bottom. */
const NARROW = 640;
const LOWEST = 200;
const HIGHEST = 640;

const Part = memo(({ data }: NodeProps<Node<Box>>) => {
  const { operator, description, parallelism, now, finding, chosen, down } = data;
  const tone = finding ? (["retries", "slow", "order", "stalled"].includes(finding.kind) ? "warn" : "bad") : "";
  return (
    <div
      className={`part ${tone && `part-${tone}`} ${chosen ? "part-chosen" : ""}`}
      title={finding?.text ?? description}
    >
      <Handle type="target" position={down ? Position.Top : Position.Left} isConnectable={false} />
      <div className="part-kind">
        {operator}
        {parallelism > 1 && <span> × {parallelism}</span>}
      </div>
      <div className="part-name">{nameOf(description)}</div>
      {now && (
        <div className="part-now">
          <span>{rate(now.rowsOut || now.rowsIn)}/s</span>
          {now.held > 0 && <span>{some(now.held)} held</span>}
        </div>
      )}
      <Handle type="source" position={down ? Position.Bottom : Position.Right} isConnectable={false} />
    </div>
  );
});

const TYPES = { part: Part };

export default function PlanGraph({ graph, now, findings = [], chosen, onChoose }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(NARROW);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    if (frame.current) {
      setWidth(frame.current.clientWidth);
      watch.observe(frame.current);
    }
    return () => watch.disconnect();
  }, []);
  const down = width < NARROW;
  const { places, size } = useMemo(() => laidOut(graph, down), [graph, down]);
  const height = Math.min(HIGHEST, Math.max(LOWEST, size.height * Math.min(1, (width * 0.9) / size.width) + 72));
  const nodes = useMemo(
    () =>
      graph.nodes.map((node): Node<Box> => {
        const finding = findings.find((each) => each.node_id === node.node_id);
        const does = now?.get(node.node_id);
        return {
          id: String(node.node_id),
          type: "part",
          position: places.get(node.node_id) ?? { x: 0, y: 0 },
          width: WIDTH,
          height: HEIGHT,
          ariaLabel: `${node.description}, ${node.operator}${does ? `, ${rate(does.rowsOut || does.rowsIn)} rows per second` : ""}${
            finding ? `: ${finding.text}` : ""
          }`,
          data: {
            operator: node.operator,
            description: node.description,
            parallelism: node.parallelism,
            now: does,
            finding,
            chosen: node.node_id === chosen,
            down,
          },
        };
      }),
    [graph, places, now, findings, chosen, down],
  );
  const edges = useMemo(
    () =>
      graph.edges.map((edge): Edge => {
        const pressure = now?.get(edge.src_id)?.pressure ?? 0;
        const label = pressure >= TOLD ? share(pressure) : edge.edge_type === "Forward" ? "" : edge.edge_type;
        return {
          id: `${edge.src_id}-${edge.dest_id}`,
          source: String(edge.src_id),
          target: String(edge.dest_id),
          label,
          className: pressure >= 0.5 ? "edge-bad" : pressure >= 0.1 ? "edge-warn" : "",
          ariaLabel: `from ${edge.src_id} to ${edge.dest_id}${pressure >= TOLD ? `: ${label} back-pressure` : ""}`,
        };
      }),
    [graph, now],
  );
  return (
    <div className="graph" ref={frame} style={{ height }}>
      <ReactFlow
        key={down ? "down" : "right"}
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        fitView
        fitViewOptions={{ padding: 0.06, maxZoom: 1 }}
        minZoom={0.1}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={onChoose !== undefined}
        zoomOnScroll={false}
        preventScrolling={false}
        onNodeClick={(_, node) => onChoose?.(Number(node.id))}
        onSelectionChange={({ nodes: [node] }) => {
          if (node && onChoose && Number(node.id) !== chosen) onChoose(Number(node.id));
        }}
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={20} size={1} />
      </ReactFlow>
    </div>
  );
}

interface Layout {
  places: Map<number, { x: number; y: number }>;
  size: { width: number; height: number };
}

function laidOut(graph: Graph, down: boolean): Layout {
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: down ? "TB" : "LR", nodesep: 24, ranksep: down ? 32 : 44 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) layout.setNode(String(node.node_id), { width: WIDTH, height: HEIGHT });
  for (const edge of graph.edges) layout.setEdge(String(edge.src_id), String(edge.dest_id));
  dagre.layout(layout);
  const { width = WIDTH, height = HEIGHT } = layout.graph();
  const places = new Map(
    graph.nodes.map((node) => {
      const at = layout.node(String(node.node_id));
      return [node.node_id, { x: at.x - WIDTH / 2, y: at.y - HEIGHT / 2 }];
    }),
  );
  return { places, size: { width, height } };
}
