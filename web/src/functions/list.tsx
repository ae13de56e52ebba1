import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { udfs } from "../api/queries";
import { useMay } from "../app/may";
import { Failed, Waiting } from "../design/parts";
import { moment } from "../design/words";
import { LANGUAGES } from "./languages";

export function FunctionList() {
  const { data, error } = useQuery(udfs);
  const mayChange = useMay("admin");
  return (
    <div className="stack">
      <div className="head">
        <h1>Functions</h1>
        {mayChange && (
          <Link to="/functions/new" className="button button-main">
            New function
          </Link>
        )}
      </div>
      {error && !data && <Failed error={error} what="The functions cannot be shown." />}
      {!data && !error && <Waiting />}
      {data?.data.length === 0 && (
        <div className="panel empty">
          <h2>No function yet</h2>
          <p>
            A function is written in Python, Rust or C, and is called for each row of a query by its name. It is built
            to one shared library, which DuckDB, Polars, Spark and others load, too.
          </p>
          <p>
            You can <Link to="/functions/new">try one</Link> on a few rows before anything uses it: it runs in a process
            of its own, so it may also crash.
          </p>
        </div>
      )}
      {data && data.data.length > 0 && (
        <div className="panel table-frame">
          <table className="table table-hover">
            <caption className="unseen">Saved functions, by name</caption>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Language</th>
                <th scope="col">What it does</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {data.data.map((udf) => (
                <tr key={udf.id}>
                  <th scope="row">
                    <Link to="/functions/$id" params={{ id: udf.id }}>
                      {udf.prefix === "/" ? "" : udf.prefix}
                      {udf.name}
                    </Link>
                  </th>
                  <td>{LANGUAGES[udf.language].name}</td>
                  <td>{udf.description ?? <span className="quiet">–</span>}</td>
                  <td className="quiet">{moment(udf.updated_at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
