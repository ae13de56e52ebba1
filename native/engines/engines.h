/* engines.h: what the entry points of a library call. `build/engines.py` writes them, because their names contain those of
 * the functions and of the library; in C, and for functions in Rust in Rust. */
#ifndef ARROYO_UDF_ENGINES_H
#define ARROYO_UDF_ENGINES_H

#include <stdbool.h>
#include "arroyo_udf.h"

/* ---- Polars: _polars_plugin_field_FUNCTION and _polars_plugin_FUNCTION ------------------------------------------ */

typedef struct polars_series {
  struct ArrowSchema *field;
  struct ArrowArray **arrays;
  size_t n_arrays;
  void (*release)(struct polars_series *series);
  void *private_data; /* not NULL, or Polars asks for the error */
} polars_series;

void arroyo_udf_polars_field(const char *function, const struct ArrowSchema *fields, size_t n, struct ArrowSchema *out,
                             const uint8_t *options, size_t n_options);
void arroyo_udf_polars_call(const char *function, polars_series *in, size_t n, const uint8_t *options, size_t n_options,
                            polars_series *out);
const char *arroyo_udf_polars_error(void);

/* ---- DuckDB: STEM_init_c_api, with the stem of the file's name -------------------------------------------------- */

typedef void *duckdb_object; /* a handle of any kind */
typedef void (*duckdb_slot)(void);

typedef struct {
  void (*set_error)(duckdb_object info, const char *error);
  duckdb_object *(*get_database)(duckdb_object info);
  const duckdb_slot *(*get_api)(duckdb_object info, const char *version);
} duckdb_access;

bool arroyo_udf_duckdb_load(duckdb_object info, const duckdb_access *access);

/* ---- Daft: daft_module_magic ------------------------------------------------------------------------------------ */

typedef struct daft_session daft_session;

typedef struct {
  uint32_t version;
  const char *name;
  int (*init)(daft_session *session);
  void (*free_string)(char *text);
} daft_module;

daft_module arroyo_udf_daft_module(void);

/* ---- SQLite: sqlite3_extension_init ----------------------------------------------------------------------------- */

typedef struct sqlite_connection sqlite_connection;
typedef void (*sqlite_slot)(void);

int arroyo_udf_sqlite_load(sqlite_connection *connection, char **error, const sqlite_slot *api);

#endif
