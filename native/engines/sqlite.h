/* sqlite.h: functions of SQLite (tried with 3.40.1 to 3.54.1).
 *
 *     sqlite> .load ./libudf.so
 *
 * SQLite calls row by row. */
#ifndef ARROYO_UDF_ENGINES_SQLITE_H
#define ARROYO_UDF_ENGINES_SQLITE_H

#include "sqlite_aggregates.h"
#include "sqlite_tables.h"
#include "sqlite_values.h"

static void sqlite_call(sqlite_context *context, int n, sqlite_value **given) {
  session *s = SQLITE(SQLITE_USER_DATA, void *, sqlite_context *)(context);
  const arroyo_udf_function *function = s->function;
  struct ArrowArray batch;
  sqlite_result result = {context, function->returns};
  char *why = sqlite_refusal(function->arguments, function->returns);
  bool has_batch = why == NULL && make_batch(&batch, n, 1);
  if (why == NULL && !has_batch) why = out_of_memory;
  for (int i = 0; i < n && why == NULL; i++)
    sqlite_argument(batch.children[i], function->arguments->children[i], given[i], &why);
  if (why == NULL) {
    if (!call(s, &batch, sqlite_take, &result, &why)) sqlite_fail(context, why);
    return;
  }
  if (has_batch) batch.release(&batch);
  sqlite_fail(context, sqlite_named(function, why));
}

/* Where it fails, SQLite has closed what belongs to the function, unless there was no memory for it. */
static int sqlite_register(sqlite_connection *connection, uint32_t number) {
  const arroyo_udf_function *function = this_plugin()->functions[number];
  bool is_table = function->kind == ARROYO_UDF_TABLE, is_of_groups = is_aggregate(function);
  if (!is_callable(function) && !is_table && !is_of_groups) return SQLITE_OK;
  bool is_immutable = function->kind != ARROYO_UDF_ASYNC && function->volatility == ARROYO_UDF_IMMUTABLE;
  int how = SQLITE_UTF8 | (is_immutable ? SQLITE_DETERMINISTIC : 0);
  void *data = is_of_groups ? (void *)open_aggregate(number) : open_session(number);
  if (data == NULL) return SQLITE_NOMEM;
  if (is_table)
    return SQLITE(SQLITE_CREATE_MODULE_V2, int, sqlite_connection *, const char *, const sqlite_module *, void *,
                  void (*)(void *))(connection, function->name, &sqlite_tables, data, close_session);
  return SQLITE(SQLITE_CREATE_FUNCTION_V2, int, sqlite_connection *, const char *, int, int, void *,
                void (*)(sqlite_context *, int, sqlite_value **), void (*)(sqlite_context *, int, sqlite_value **),
                void (*)(sqlite_context *), void (*)(void *))(
      connection, function->name, (int)function->arguments->n_children, how, data, is_of_groups ? NULL : sqlite_call,
      is_of_groups ? sqlite_step : NULL, is_of_groups ? sqlite_final : NULL, is_of_groups ? close_aggregate : close_session);
}

int arroyo_udf_sqlite_load(sqlite_connection *connection, char **error, const sqlite_slot *api) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  char *(*format)(const char *, ...) = (char *(*)(const char *, ...))api[SQLITE_MPRINTF];
  if (sqlite_api != NULL && sqlite_api != api) {
    *error = format("another copy of SQLite has loaded %s in this process", plugin->name);
    return SQLITE_ERROR;
  }
  sqlite_api = api;
  if (SQLITE(SQLITE_LIBVERSION_NUMBER, int, void)() < SQLITE_LEAST) {
    *error = format("%s needs SQLite 3.9.0 or newer", plugin->name);
    return SQLITE_ERROR;
  }
  int status = SQLITE_OK;
  for (uint32_t i = 0; status == SQLITE_OK && i < plugin->n_functions; i++) status = sqlite_register(connection, i);
  return status;
}

#endif
