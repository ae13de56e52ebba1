import { type ComponentProps, lazy, Suspense } from "react";
import type Loaded from "./graph";
import "./graph.css";

const PlanGraph = lazy(() => import("./graph"));

/** The graph, or, until it is loaded, a place of its size. */
export function LazyGraph(props: ComponentProps<typeof Loaded>) {
  return (
    <Suspense fallback={<div className="graph" />}>
      <PlanGraph {...props} />
    </Suspense>
  );
}
