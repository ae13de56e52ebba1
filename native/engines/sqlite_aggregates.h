/* sqlite_aggregates.h: aggregates of SQLite.
 *
 * SQLite gives the rows of a group one by one. A group keeps them until there are many; each call of a step is for one
 * group. In a window, SQLite refuses them. */
#ifndef ARROYO_UDF_ENGINES_SQLITE_AGGREGATES_H
#define ARROYO_UDF_ENGINES_SQLITE_AGGREGATES_H

#include "groups.h"
#include "sqlite_values.h"

/* Ends the query; SQLite calls xFinal yet. */
static void sqlite_fail_group(sqlite_context *context, group *g, char *why) {
  g->has_failed = true;
  free_group(g);
  sqlite_fail(context, why);
}

static void sqlite_step(sqlite_context *context, int n, sqlite_value **given) {
  aggregate *of = SQLITE(SQLITE_USER_DATA, void *, sqlite_context *)(context);
  const struct ArrowSchema *arguments = of->function->arguments;
  group *g = SQLITE(SQLITE_AGGREGATE_CONTEXT, void *, sqlite_context *, int)(context, (int)sizeof(group));
  if (g == NULL) {
    sqlite_fail(context, out_of_memory);
    return;
  }
  if (g->has_failed) return;
  char *why = g->n_rows || g->n_states ? NULL : sqlite_refusal(arguments, of->function->returns);
  for (int i = 0; why == NULL && i < n; i++) sqlite_pack(&g->rows, arguments->children[i], given[i], &why);
  if (why != NULL) {
    sqlite_fail_group(context, g, sqlite_named(of->function, why));
    return;
  }
  g->n_rows++;
  int64_t moved;
  if (is_full(g) && !settle_groups(of, &g, 1, UINT32_MAX, &moved, &why)) sqlite_fail_group(context, g, why);
}

static void sqlite_final(sqlite_context *context) {
  aggregate *of = SQLITE(SQLITE_USER_DATA, void *, sqlite_context *)(context);
  group *g = SQLITE(SQLITE_AGGREGATE_CONTEXT, void *, sqlite_context *, int)(context, 0); /* NULL: no row has come */
  sqlite_result result = {context, of->function->returns};
  int64_t moved;
  char *why = g ? NULL : sqlite_refusal(of->function->arguments, of->function->returns);
  if (why != NULL) why = sqlite_named(of->function, why);
  else if (g == NULL || !g->has_failed) finish_groups(of, &g, 1, sqlite_take, &result, 0, &moved, &why);
  if (g && g->has_failed && why == NULL) SQLITE(SQLITE_RESULT_NULL, void, sqlite_context *)(context);
  if (g) free_group(g);
  if (why != NULL) sqlite_fail(context, why);
}

#endif
