// Another query for a pipeline. It goes on from the last checkpoint, if the state fits to it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask } from "../api/client";
import { type Graph, type Pipeline, pipeline } from "../api/queries";
import { Button, Dialog, Failed, Waiting } from "../design/parts";
import { QueryWorkbench } from "./query";
import "./workbench.css";

const route = getRouteApi("/pipelines/$id/edit");

export function EditPipeline() {
  const { id } = route.useParams();
  const { data, error } = useQuery({ ...pipeline(id), refetchInterval: false });
  if (error) return <Failed error={error} what="The pipeline cannot be read." />;
  if (!data) return <Waiting />;
  return <Editing key={id} given={data} />;
}

function Editing({ given }: { given: Pipeline }) {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const [query, setQuery] = useState(given.query);
  const [graph, setGraph] = useState<Graph | null>(null);
  const [asking, setAsking] = useState(false);
  const [discard, setDiscard] = useState(false);
  const save = useMutation({
    mutationFn: () =>
      ask(
        api.POST("/v1/pipelines/{id}/restart", {
          params: { path: { id: given.id } },
          body: { query, ...(discard ? { discard_state: true } : {}) },
        }),
      ),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["pipelines"] });
      await navigate({ to: "/pipelines/$id", params: { id: given.id }, search: {} });
    },
  });
  return (
    <div className="stack">
      <div className="head">
        <h1>Edit {given.name}</h1>
        <div className="row">
          <Link to="/pipelines/$id" params={{ id: given.id }} search={{}} className="button">
            Cancel
          </Link>
          <Button look="main" disabled={graph === null || query === given.query} onClick={() => setAsking(true)}>
            Run this query…
          </Button>
        </div>
      </div>
      <QueryWorkbench query={query} onChange={setQuery} onValid={setGraph} />
      {asking && (
        <Dialog
          title="Run the new query"
          submit="Run it"
          bad={discard}
          busy={save.isPending}
          error={save.error}
          onClose={() => setAsking(false)}
          onSubmit={() => save.mutate()}
        >
          <p>
            The job stops with a checkpoint, and goes on with the new query from there. If the state does not fit to the
            new query, this is refused, and nothing changes.
          </p>
          <label className="check">
            <input type="checkbox" checked={discard} onChange={(event) => setDiscard(event.target.checked)} />
            <span>Begin anew: give up the state. Rows are read, and come, again.</span>
          </label>
        </Dialog>
      )}
    </div>
  );
}
