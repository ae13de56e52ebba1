// The editor, or, until it is there, a place of its size: nothing moves when it comes.

import { type ComponentProps, lazy, Suspense } from "react";
import type { Editor as Loaded } from "./editor";

const Editor = lazy(async () => ({ default: (await import("./editor")).Editor }));

export function LazyEditor(props: ComponentProps<typeof Loaded>) {
  return (
    <div style={{ minHeight: `calc(min(${props.rows ?? 12}, var(--most-rows)) * 1.55 * 0.8125rem + 1em)` }}>
      <Suspense fallback={<pre className="panel-body">{props.value}</pre>}>
        <Editor {...props} />
      </Suspense>
    </div>
  );
}
