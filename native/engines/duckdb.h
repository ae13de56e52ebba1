/* duckdb.h: functions of DuckDB, by its C extension API v1.2.0 (tried with 1.3.0 to 2.0.1; wheels of 1.2 for
 * Python look for another platform in the footer).
 *
 *     LOAD 'libudf.duckdb_extension';            -- of a database opened with allow_unsigned_extensions
 *
 * The file needs DuckDB's footer, and a name whose stem the entry point has; `build` sees to both.
 *
 * A chunk of up to 2,048 rows is one call. */
#ifndef ARROYO_UDF_ENGINES_DUCKDB_H
#define ARROYO_UDF_ENGINES_DUCKDB_H

#include "duckdb_aggregates.h"
#include "duckdb_tables.h"
#include "duckdb_values.h"

static char *duckdb_refusal_of(const arroyo_udf_function *function) {
  return function->kind == ARROYO_UDF_TABLE ? duckdb_table_refusal(function) : duckdb_function_refusal(function);
}

static void duckdb_call(duckdb_object info, duckdb_object chunk, duckdb_object vector) {
  session *s = DUCKDB(DUCKDB_CALLED_DATA, void *, duckdb_object)(info);
  duckdb_result result = {vector, s->function->returns};
  struct ArrowArray batch;
  char *why = NULL;
  int64_t rows;
  if (!duckdb_batch(&batch, s->function->arguments, chunk, s->function->kind != ARROYO_UDF_ASYNC, &rows)) why = out_of_memory;
  else call(s, &batch, s->function->kind == ARROYO_UDF_TABLE ? duckdb_take_lists : duckdb_take, &result, &why);
  if (why == NULL) return;
  DUCKDB(DUCKDB_CALLED_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

/* Of a function that has a type that DuckDB has not, or that is not passed on: it says so when it is called. */
static void duckdb_refuse(duckdb_object info, duckdb_object chunk, duckdb_object vector) {
  session *s = DUCKDB(DUCKDB_CALLED_DATA, void *, duckdb_object)(info);
  (void)chunk, (void)vector;
  char *why = duckdb_refusal_of(s->function);
  DUCKDB(DUCKDB_CALLED_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

static bool duckdb_register(duckdb_object connection, uint32_t number) {
  const arroyo_udf_function *function = this_plugin()->functions[number];
  session *s = open_session(number);
  if (s == NULL) return false;
  duckdb_object made = DUCKDB(DUCKDB_CREATE_FUNCTION, duckdb_object, void)();
  char *why = duckdb_refusal_of(function);
  bool fits = why == NULL;
  DUCKDB(DUCKDB_FUNCTION_NAME, void, duckdb_object, const char *)(made, function->name);
  for (int64_t i = 0; fits && i < function->arguments->n_children; i++)
    with_type(DUCKDB_FUNCTION_PARAMETER, made, duckdb_type_of(function->arguments->children[i]));
  if (!fits) with_type(DUCKDB_FUNCTION_VARARGS, made, (duckdb_type){DUCKDB_ANY, 0, 0});
  duckdb_object returns = !fits                                 ? duckdb_logical_type((duckdb_type){DUCKDB_VARCHAR, 0, 0})
                          : function->kind == ARROYO_UDF_TABLE ? duckdb_rows_type(function)
                                                               : duckdb_logical_type(duckdb_type_of(function->returns));
  DUCKDB(DUCKDB_FUNCTION_RETURNS, void, duckdb_object, duckdb_object)(made, returns);
  DUCKDB(DUCKDB_DESTROY_LOGICAL_TYPE, void, duckdb_object *)(&returns);
  DUCKDB(DUCKDB_FUNCTION_NULLS, void, duckdb_object)(made); /* nulls are the function's */
  bool is_stable = function->volatility == ARROYO_UDF_IMMUTABLE || function->volatility == ARROYO_UDF_STABLE;
  if (function->kind == ARROYO_UDF_ASYNC || !is_stable) DUCKDB(DUCKDB_FUNCTION_VOLATILE, void, duckdb_object)(made);
  DUCKDB(DUCKDB_FUNCTION_DATA, void, duckdb_object, void *, void (*)(void *))(made, s, close_session);
  DUCKDB(DUCKDB_FUNCTION_CALL, void, duckdb_object, void (*)(duckdb_object, duckdb_object, duckdb_object))(
      made, fits ? duckdb_call : duckdb_refuse);
  bool is_registered = !DUCKDB(DUCKDB_REGISTER_FUNCTION, int, duckdb_object, duckdb_object)(connection, made);
  DUCKDB(DUCKDB_DESTROY_FUNCTION, void, duckdb_object *)(&made); /* closes the session with the last copy */
  free_text(why);
  return is_registered;
}

/* False: the copy is that of another DuckDB in this process, whose functions know nothing of this one's objects. */
static bool take_duckdb_api(const duckdb_slot *api) {
  pthread_mutex_lock(&duckdb_api_lock);
  if (duckdb_api[DUCKDB_CONNECT] == NULL) memcpy(duckdb_api, api, sizeof duckdb_api);
  bool is_same = !memcmp(duckdb_api, api, sizeof duckdb_api);
  pthread_mutex_unlock(&duckdb_api_lock);
  return is_same;
}

bool arroyo_udf_duckdb_load(duckdb_object info, const duckdb_access *access) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  const duckdb_slot *api = access->get_api(info, "v1.2.0");
  if (api == NULL) return false; /* DuckDB says that it is too old */
  if (!take_duckdb_api(api)) {
    char *why = text_of("another copy of DuckDB has loaded %s in this process", plugin->name);
    access->set_error(info, why);
    free_text(why);
    return false;
  }
  duckdb_object connection = NULL;
  if (DUCKDB(DUCKDB_CONNECT, int, duckdb_object, duckdb_object *)(*access->get_database(info), &connection))
    return access->set_error(info, "there is no connection to the database"), false;
  bool is_whole = true;
  for (uint32_t i = 0; is_whole && i < plugin->n_functions; i++) {
    const arroyo_udf_function *function = plugin->functions[i];
    bool is_table = function->kind == ARROYO_UDF_TABLE;
    if (is_callable(function) || is_table) is_whole = duckdb_register(connection, i);
    if (is_table) is_whole = is_whole && duckdb_register_table(connection, i);
    else if (is_aggregate(function)) is_whole = duckdb_register_aggregate(connection, i);
    if (!is_whole) {
      char *why = text_of("DuckDB does not take the function %s.%s: is there one of this name?", plugin->name,
                          function->name);
      access->set_error(info, why);
      free_text(why);
    }
  }
  DUCKDB(DUCKDB_DISCONNECT, void, duckdb_object *)(&connection);
  return is_whole;
}

#endif
