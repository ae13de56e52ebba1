import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Shape, said } from "../api/client";
import { connectors, profiles, type Table, tables } from "../api/queries";
import { useMay } from "../app/may";
import { Button, Dialog, Failed, Menu, MenuItem, Panel, useToast, Waiting } from "../design/parts";
import { count } from "../design/words";
import { shown } from "../pipelines/rows";
import { ConnectorIcon } from "./icon";

export function ConnectionList() {
  const { data, error } = useQuery(tables);
  const known = useQuery(connectors).data?.data ?? [];
  const mayChange = useMay("admin");
  const mayRun = useMay("run");
  const [looking, setLooking] = useState<Table | null>(null);
  const [deleting, setDeleting] = useState<Table | null>(null);
  return (
    <div className="stack">
      <div className="head">
        <h1>Connections</h1>
        {mayChange && (
          <Link to="/connections/new" search={{}} className="button button-main">
            New table
          </Link>
        )}
      </div>
      {error && !data && <Failed error={error} what="The tables cannot be shown." />}
      {!data && !error && <Waiting />}
      {data?.data.length === 0 && (
        <div className="panel empty">
          <h2>No table yet</h2>
          <p>
            A saved table is one that every query may use by its name: files in a folder or an object store, a table of
            a database, or a stream that counts. Queries can also create tables of their own.
          </p>
          {mayChange && (
            <Link to="/connections/new" search={{}} className="button">
              Connect one
            </Link>
          )}
        </div>
      )}
      {data && data.data.length > 0 && (
        <div className="panel table-frame">
          <table className="table table-hover">
            <caption className="unseen">Saved tables</caption>
            <thead>
              <tr>
                <th scope="col">Table</th>
                <th scope="col">Connector</th>
                <th scope="col">Columns</th>
                <th scope="col" className="number">
                  Pipelines
                </th>
                <th scope="col">
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.data.map((table) => (
                <tr key={table.id}>
                  <th scope="row">
                    {table.name} <span className="small quiet">{table.table_type}</span>
                  </th>
                  <td>
                    <span className="row">
                      <ConnectorIcon connector={known.find((each) => each.id === table.connector)} />
                      {table.connector}
                    </span>
                  </td>
                  <td className="small">
                    {table.schema.fields
                      ?.map((field) => `${field.name} ${field.sql_name ?? field.type}`)
                      .join(", ") || <span className="quiet">as its rows have them</span>}
                  </td>
                  <td className="number">{count(table.consumers)}</td>
                  <td>
                    <div className="row" style={{ justifyContent: "flex-end" }}>
                      {mayRun && table.table_type === "source" && (
                        <Button onClick={() => setLooking(table)}>Sample</Button>
                      )}
                      {mayChange && (
                        <Menu label="More">
                          <MenuItem onClick={() => setDeleting(table)}>Delete…</MenuItem>
                        </Menu>
                      )}
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Profiles mayChange={mayChange} />
      {looking && <Sample table={looking} onClose={() => setLooking(null)} />}
      {deleting && <Delete table={deleting} onClose={() => setDeleting(null)} />}
    </div>
  );
}

function Sample({ table, onClose }: { table: Table; onClose: () => void }) {
  const { data, error } = useQuery({
    queryKey: ["tables", table.id, "sample"],
    queryFn: () =>
      ask(api.POST("/v1/arroyo_udf/connection_tables/{id}/sample", { params: { path: { id: table.id } } })),
    retry: false,
  });
  return (
    <Panel title={`The first rows of ${table.name}`} actions={<Button onClick={onClose}>Close</Button>}>
      {error && <Failed error={error} what="There is no sample." />}
      {!data && !error && <Waiting>Reading…</Waiting>}
      {data?.refused.map((text) => (
        <p key={text} className="panel-body small">
          {text}
        </p>
      ))}
      {data && data.rows.length === 0 && <p className="panel-body quiet">There is no row yet.</p>}
      {data && data.rows.length > 0 && (
        <section className="table-frame" tabIndex={0} aria-label="Sample">
          <table className="table">
            <thead>
              <tr>
                {data.fields.map((field) => (
                  <th key={field.name} scope="col">
                    {field.name} <span className="small">{field.type}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.rows.map((row, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: rows of a sample are known by their place
                <tr key={at}>
                  {data.fields.map((field) => (
                    <td key={field.name} className="mono">
                      {shown(row[field.name])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Panel>
  );
}

function Delete({ table, onClose }: { table: Table; onClose: () => void }) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => ask(api.DELETE("/v1/connection_tables/{id}", { params: { path: { id: table.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["tables"] });
      onClose();
    },
  });
  return (
    <Dialog
      title={`Delete ${table.name}`}
      submit="Delete it"
      bad
      busy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onSubmit={() => remove.mutate()}
    >
      <p>Queries can no longer use it by its name. Its data stays.</p>
    </Dialog>
  );
}

function Profiles({ mayChange }: { mayChange: boolean }) {
  const client = useQueryClient();
  const toast = useToast();
  const { data } = useQuery(profiles);
  const remove = useMutation({
    mutationFn: (profile: Shape<"ConnectionProfile">) =>
      ask(api.DELETE("/v1/connection_profiles/{id}", { params: { path: { id: profile.id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ["profiles"] }),
    onError: (error) => toast("bad", said(error)),
  });
  if (!data || data.data.length === 0) return null;
  return (
    <Panel title="Profiles">
      <div className="table-frame">
        <table className="table">
          <caption className="unseen">Profiles: addresses that several tables use</caption>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Connector</th>
              <th scope="col">
                <span className="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.data.map((profile) => (
              <tr key={profile.id}>
                <th scope="row">{profile.name}</th>
                <td>{profile.connector}</td>
                <td className="number">
                  {mayChange && <Button onClick={() => remove.mutate(profile)}>Delete</Button>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
