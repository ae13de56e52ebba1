// How long rows took: a bar for each bucket of the runtime's histogram. It is also a table, for who does not see it.

import { count, duration } from "../design/words";
import { type Bucket, percentile } from "../live/rates";
import "./charts.css";

export function Histogram({ buckets, longest }: { buckets: readonly Bucket[]; longest: number }) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.rows));
  const last = buckets.at(-1);
  return (
    <figure className="curves">
      <figcaption>
        <span>Latency</span>
        <span className="small quiet">
          half within <b>{duration(percentile(buckets, 0.5))}</b>, 99 % within{" "}
          <b>{duration(percentile(buckets, 0.99))}</b>, longest <b>{longest ? duration(longest) : "–"}</b>
        </span>
      </figcaption>
      {buckets.length === 0 ? (
        <p className="quiet small histogram">
          No row has ended in this time, or the function has no timeout, deadline or retries: then latencies are not
          measured.
        </p>
      ) : (
        <>
          <div className="histogram" aria-hidden="true">
            {buckets.map((bucket) => (
              <div
                key={bucket.from}
                style={{ height: `${(bucket.rows / most) * 100}%` }}
                title={`${duration(bucket.from)} to ${duration(bucket.to)}: ${count(bucket.rows)} rows`}
              />
            ))}
          </div>
          <div className="row row-wide small quiet" aria-hidden="true">
            <span>{duration(buckets[0]?.from)}</span>
            <span>{duration(last?.to)}</span>
          </div>
          <div className="unseen">
            <table>
              <caption>Rows by latency</caption>
              <tbody>
                {buckets.map((bucket) => (
                  <tr key={bucket.from}>
                    <th scope="row">
                      {duration(bucket.from)} to {duration(bucket.to)}
                    </th>
                    <td>{count(bucket.rows)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </figure>
  );
}
