// What a query may name: tables with their columns, and functions.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";

export interface Known {
  /** Columns of each table. */
  tables: Record<string, string[]>;
  functions: { name: string; detail: string }[];
}

const BUILT_IN: Completion[] = [
  ["tumble", "interval '1 minute'", "a window of a fixed width, in GROUP BY"],
  ["hop", "interval '1 minute', interval '1 hour'", "windows that overlap: slide and width"],
  ["session", "interval '5 minutes'", "a window that ends after a gap"],
].map(([name, inside, info]) => ({
  label: `${name}`,
  apply: `${name}(${inside})`,
  info: `${info}`,
  type: "function",
  boost: -1,
}));

export function functionCompletion(known: Known | undefined) {
  const own: Completion[] = (known?.functions ?? []).map(({ name, detail }) => ({
    label: name,
    apply: `${name}(`,
    detail,
    type: "function",
    boost: 2,
  }));
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/\w+/);
    if (word === null && !context.explicit) return null;
    return { from: word?.from ?? context.pos, options: [...own, ...BUILT_IN], validFor: /^\w*$/ };
  };
}
