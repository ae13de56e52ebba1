import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Graph, pipeline } from "../api/queries";
import { Button, Failed, Field } from "../design/parts";
import { QueryWorkbench } from "./query";
import { StartDialog } from "./start";
import "./workbench.css";

const route = getRouteApi("/pipelines/new");
const KEY = "arroyo-udf-draft";
const EXAMPLE = `-- A stream that counts; take a table of yours instead.
CREATE TABLE numbers WITH (connector = 'impulse', event_rate = '100');

SELECT counter, counter * counter AS square FROM numbers;
`;

interface Draft {
  name: string;
  query: string;
}

function kept(): Draft {
  try {
    const { name, query } = JSON.parse(sessionStorage.getItem(KEY) ?? "") as Draft;
    return { name: String(name), query: String(query) };
  } catch {
    return { name: "", query: EXAMPLE };
  }
}

export function CreatePipeline() {
  const { from } = route.useSearch();
  const copied = useQuery({ ...pipeline(from ?? ""), enabled: from !== undefined, refetchInterval: false });
  const [draft, setDraft] = useState<Draft>(kept);
  const [graph, setGraph] = useState<Graph | null>(null);
  const [starting, setStarting] = useState(false);
  const taken = useRef(false);
  useEffect(() => {
    if (copied.data && !taken.current) {
      taken.current = true;
      setDraft({ name: `${copied.data.name} (copy)`, query: copied.data.query });
    }
  }, [copied.data]);
  // A draft survives a reload, in this tab alone.
  useEffect(() => {
    if (from === undefined) sessionStorage.setItem(KEY, JSON.stringify(draft));
  }, [draft, from]);

  return (
    <div className="stack">
      <div className="head">
        <h1>New pipeline</h1>
        <Button look="main" disabled={graph === null} onClick={() => setStarting(true)}>
          Start…
        </Button>
      </div>
      {copied.error && <Failed error={copied.error} what="The pipeline to copy cannot be read." />}
      <Field label="Name">
        {(given) => (
          <input
            {...given}
            className="input workbench-name"
            maxLength={200}
            value={draft.name}
            placeholder="What it is for"
            onChange={(event) => setDraft({ ...draft, name: event.target.value })}
          />
        )}
      </Field>
      <QueryWorkbench query={draft.query} onChange={(query) => setDraft({ ...draft, query })} onValid={setGraph} />
      {starting && (
        <StartDialog
          name={draft.name}
          query={draft.query}
          copied={copied.data}
          onClose={() => setStarting(false)}
          onStarted={() => sessionStorage.removeItem(KEY)}
        />
      )}
    </div>
  );
}
