// The editor of queries and functions, with what is wrong under the words. It is loaded when a screen needs it.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { python } from "@codemirror/lang-python";
import { rust } from "@codemirror/lang-rust";
import { PostgreSQL, type SQLNamespace, schemaCompletionSource, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { functionCompletion, type Known } from "./completion";
import type { Mark } from "./marks";

export type EditorLanguage = "sql" | "python" | "rust" | "c";

interface Props {
  label: string;
  language: EditorLanguage;
  value: string;
  onChange?: (value: string) => void;
  marks?: readonly Mark[];
  known?: Known;
  /** Lines that it shows at least. */
  rows?: number;
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--series-2)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--series-5)" },
  { tag: [tags.comment], color: "var(--ink-2)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], color: "var(--accent)" },
  { tag: [tags.typeName, tags.className, tags.meta], color: "var(--warn)" },
]);

const look = EditorView.theme({
  "&": { fontSize: "0.8125rem", backgroundColor: "var(--surface)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": {
    fontFamily: "var(--mono)",
    lineHeight: "1.55",
    minHeight: "calc(min(var(--rows), var(--most-rows)) * 1.55em + 1em)",
  },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-2)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--sunken) 55%, transparent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent) !important",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius-s)",
    maxWidth: "40rem",
  },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--ink)",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important" },
});

function languageOf(language: EditorLanguage, known: Known | undefined) {
  if (language === "python") return python();
  if (language === "rust") return rust();
  if (language === "c") return cpp();
  const schema: SQLNamespace = known?.tables ?? {};
  const support = sql({ dialect: PostgreSQL, upperCaseKeywords: true });
  return [
    support,
    support.language.data.of({ autocomplete: schemaCompletionSource({ dialect: PostgreSQL, schema }) }),
    support.language.data.of({ autocomplete: functionCompletion(known) }),
  ];
}

export function Editor({ label, language, value, onChange, marks = [], known, rows = 12 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const parts = useRef({ language: new Compartment(), label: new Compartment() });
  const first = useRef({ value, known, language, label, readOnly: onChange === undefined });

  useEffect(() => {
    const { value, known, language, label, readOnly } = first.current;
    const editor = new EditorView({
      parent: place.current ?? document.body,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          indentUnit.of("    "),
          bracketMatching(),
          closeBrackets(),
          autocompletion(),
          highlightActiveLine(),
          lintGutter(),
          syntaxHighlighting(colours),
          look,
          EditorView.lineWrapping,
          parts.current.label.of(named(label)),
          EditorState.readOnly.of(readOnly),
          keymap.of([
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...historyKeymap,
            ...completionKeymap,
            ...lintKeymap,
            // Escape, then Tab, leaves the editor: without a mouse, nobody is caught in it.
            indentWithTab,
          ]),
          parts.current.language.of(languageOf(language, known)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: parts.current.language.reconfigure(languageOf(language, known)) });
  }, [language, known]);

  useEffect(() => {
    view.current?.dispatch({ effects: parts.current.label.reconfigure(named(label)) });
  }, [label]);

  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
    }
  }, [value]);

  useEffect(() => {
    const editor = view.current;
    if (editor)
      editor.dispatch(
        setDiagnostics(
          editor.state,
          marks.map((mark) => placed(editor.state, mark)),
        ),
      );
  }, [marks]);

  return <div ref={place} style={{ "--rows": rows } as React.CSSProperties} />;
}

const named = (label: string) => EditorView.contentAttributes.of({ "aria-label": label });

/** Lines and columns count from 1. Without a column, the whole line is marked. */
function placed(state: EditorState, mark: Mark): Diagnostic {
  const position = (line: number, column: number) => {
    const found = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
    return Math.min(found.from + column - 1, found.to);
  };
  const from = position(mark.line, mark.column ?? 1);
  const to =
    mark.end !== undefined
      ? position(mark.end.line, mark.end.column)
      : state.doc.line(Math.min(Math.max(mark.line, 1), state.doc.lines)).to;
  return { from, to: Math.max(to, from), severity: "error", message: mark.message };
}
