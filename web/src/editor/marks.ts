// Where something is wrong in a text, from what planner and compilers say.

import type { Diagnostic } from "../api/queries";

export interface Mark {
  line: number;
  column?: number;
  end?: { line: number; column: number };
  message: string;
}

export function marksOfQuery(errors: readonly Diagnostic[]): Mark[] {
  return errors.flatMap(({ message, span }) =>
    span ? [{ line: span.start.line, column: span.start.column, end: span.end, message }] : [],
  );
}

const PLACES = [
  /^(?:.*\/)?[\w.-]+\.(?:py|c|rs):(\d+)(?::(\d+))?: ?(.*)/, // f.py:3: …, f.c:3:5: …
  /^\s*--> (?:.*\/)?[\w.-]+\.rs:(\d+):(\d+)()/, // of rustc: its message is above
];

/** What builders say, by line. Each error may have several lines. */
export function marksOfBuild(errors: readonly string[]): Mark[] {
  const marks: Mark[] = [];
  for (const error of errors) {
    let above = "";
    for (const line of error.split("\n")) {
      const found = PLACES.map((place) => place.exec(line)).find((match) => match !== null);
      if (found) {
        const [, at, column, text] = found;
        const mark: Mark = { line: Number(at), message: text || above || error };
        if (column) mark.column = Number(column);
        if (!marks.some((other) => other.line === mark.line && other.message === mark.message)) marks.push(mark);
      } else if (/^(error|warning)/.test(line.trim())) {
        above = line.trim();
      }
    }
  }
  return marks;
}
