// Languages of functions: what a new one begins with.

import type { Language } from "../api/queries";

export const LANGUAGES: Record<Language, { name: string; template: string }> = {
  python: {
    name: "Python",
    template: `from arroyo_udf_plugin import udf


@udf
def mph(distance: int, air_time: int) -> float:
    """Miles and minutes to miles per hour. For a null argument it is not called: the result is null, too."""
    return distance * 60.0 / air_time
`,
  },
  rust: {
    name: "Rust",
    template: `use arroyo_udf_plugin::udf;

/// Miles and minutes to miles per hour. For a null argument it is not called: the result is null, too.
#[udf]
fn mph(distance: i64, air_time: i64) -> f64 {
    distance as f64 * 60.0 / air_time as f64
}
`,
  },
  c: {
    name: "C",
    template: `#include "arroyo_udf_plugin.h"

/* Miles and minutes to miles per hour. For a null argument it is not called: the result is null, too. */
static const char* mph(int64_t distance, int64_t air_time, double* out) {
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL; /* or a text: the row's error */
}
ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));

ARROYO_UDF_PLUGIN(mph);
`,
  },
};

export const TEMPLATE_ROWS = "[1400, 227]\n[1416, 227]\n[null, 160]";

/** What loads the library in each engine. call: such as mph(a, b). */
export function engines(name: string, parameters: readonly string[]) {
  const library = `lib${name}.so`;
  const call = `${name}(${parameters.join(", ")})`;
  const quoted = parameters.map((parameter) => `"${parameter}"`).join(", ");
  return [
    {
      engine: "DuckDB",
      lines: `from arroyo_udf_plugin.integrations import duckdb\n\nduckdb.register(connection, "${library}")\nconnection.sql("SELECT ${call} FROM t")`,
    },
    {
      engine: "Polars",
      lines: `from arroyo_udf_plugin.integrations import polars\n\nudf = polars.functions("${library}")\ntable.with_columns(result=udf.${name}(${quoted}))`,
    },
    {
      engine: "SQLite",
      lines: `from arroyo_udf_plugin.integrations import sqlite\n\nsqlite.register(connection, "${library}")\nconnection.execute("SELECT ${call} FROM t")`,
    },
    {
      engine: "DataFusion",
      lines: `from arroyo_udf_plugin.integrations import datafusion\n\ndatafusion.register(context, "${library}")\ncontext.sql("SELECT ${call} FROM t")`,
    },
    {
      engine: "Daft",
      lines: `from daft import sql\nfrom arroyo_udf_plugin.integrations import daft\n\ndaft.register("${library}")\nsql("SELECT ${call} FROM t")`,
    },
    {
      engine: "pandas",
      lines: `from arroyo_udf_plugin.integrations import pandas\n\nudf = pandas.functions("${library}")\nudf.${name}(${parameters.map((parameter) => `table.${parameter}`).join(", ")})`,
    },
    {
      engine: "Spark",
      lines: `from arroyo_udf_plugin.integrations import spark\n\nspark.register(session, "${library}")\nsession.sql("SELECT ${call} FROM t")`,
    },
  ] as const;
}

/** mph(distance: int64, air_time: int64) -> double: distance, air_time */
export function parametersOf(signature: string): string[] {
  const inside = /\((.*)\) -> /s.exec(signature)?.[1] ?? "";
  return [...inside.matchAll(/(?:^|, )([A-Za-z_]\w*): /g)].map((match) => match[1] ?? "");
}
