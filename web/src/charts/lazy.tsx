import { type ComponentProps, lazy, Suspense } from "react";
import type Loaded from "./curves";
import "./charts.css";

const Curves = lazy(() => import("./curves"));

/** Curves, or, until they are loaded, a place of their size. */
export function LazyCurves(props: ComponentProps<typeof Loaded>) {
  return (
    <Suspense fallback={<div style={{ height: (props.height ?? 150) + 28 }} />}>
      <Curves {...props} />
    </Suspense>
  );
}
