/* engines.c: the entry points by which foreign engines load a plugin: DuckDB, Polars, Daft and SQLite.
 *
 * `arroyo-udf build` compiles this file into every library, whatever language its functions are written in. Each engine
 * looks for symbols of its own, so one file is a plugin of all of them:
 *
 *   polars.h   _polars_plugin_FUNCTION and _polars_plugin_field_FUNCTION, one pair for each function
 *   duckdb.h   STEM_init_c_api, in the C extension API v1.2.0; the file needs a footer
 *   daft.h     daft_module_magic
 *   sqlite.h   sqlite3_extension_init
 *
 * `build/engines.py` writes these symbols, `build/duckdb_file.py` the footer; engines.h is what they call. All are
 * translations onto `run`, and onto `start`, `send` and `drain_results`, of the one table of this library:
 *
 *   columns.h  an engine's columns as arrays of the types that a function has, cast where nothing is lost
 *   nested.h   the same for lists and structs
 *   calls.h    calls a function for a batch; results, row by row or as an array; what becomes of a row that failed
 *   packed.h   values as bytes, and columns made of them
 *   groups.h   the groups of an aggregate: rows and states that are kept, and calls of its steps
 *
 * DuckDB and SQLite call aggregates and table functions, too:
 *
 *   duckdb_values.h  duckdb_aggregates.h  duckdb_tables.h        sqlite_values.h  sqlite_aggregates.h  sqlite_tables.h
 *
 * GUARANTEES  An async function runs at its concurrency within each batch, and its values are in the order of the rows.
 *             A type that cannot be passed on without a loss is refused by name. A row that failed is the engine's error,
 *             with the row and its text, or null, as the library was built (ARROYO_UDF_ON_ERROR_NULL); so is a group.
 * ASSUMES     The engines pass arrays as the Arrow C Data Interface says. Their structs are declared here, from what the
 *             engines document. */
#define _GNU_SOURCE
#include "columns.h"
#include "nested.h"
#include "calls.h"
#include "packed.h"
#include "groups.h"
#include "polars.h"
#include "duckdb.h"
#include "daft.h"
#include "sqlite.h"
