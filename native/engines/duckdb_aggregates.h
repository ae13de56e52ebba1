/* duckdb_aggregates.h: aggregates of DuckDB.
 *
 * DuckDB's state of a group is a pointer to ours, which it moves as it likes; NULL: no row has come. DuckDB may use a state
 * again that it has combined or finished, as in windows; so both leave it as it is. */
#ifndef ARROYO_UDF_ENGINES_DUCKDB_AGGREGATES_H
#define ARROYO_UDF_ENGINES_DUCKDB_AGGREGATES_H

#include "duckdb_values.h"
#include "groups.h"

/* Bytes of rows that all groups of this library keep. If there are more, groups are updated after each chunk. */
#define MOST_KEPT_IN_ALL ((int64_t)256 << 20)
static int64_t kept_in_all;
#define MANY_ROWS 256

/* Counts some more, or less. true: there are too many. */
static bool is_over(int64_t more) {
  return __atomic_add_fetch(&kept_in_all, more, __ATOMIC_RELAXED) > MOST_KEPT_IN_ALL;
}

static void duckdb_fail_group(duckdb_object info, char *why) {
  DUCKDB(DUCKDB_AGGREGATE_ERROR, void, duckdb_object, const char *)(info, why);
  free_text(why);
}

static uint64_t duckdb_state_size(duckdb_object info) {
  (void)info;
  return sizeof(group *);
}

static void duckdb_init_state(duckdb_object info, group **state) {
  (void)info;
  *state = NULL;
}

static void duckdb_destroy_states(group ***states, uint64_t n) {
  int64_t size = 0;
  for (uint64_t i = 0; i < n; i++) {
    group *g = *states[i];
    if (g == NULL) continue;
    size += (int64_t)g->rows.length;
    free_group(g);
    free(g);
    *states[i] = NULL;
  }
  is_over(-size);
}

/* The group of a state, made if there is none. NULL: no memory. */
static group *group_of(group **state) {
  if (*state == NULL) *state = calloc(1, sizeof(group));
  return *state;
}

/* Brings groups up to date, whose rows count no more. */
static bool duckdb_settle(aggregate *of, group **groups, size_t n, uint32_t most, char **why) {
  int64_t moved = 0;
  bool done = settle_groups(of, groups, n, most, &moved, why);
  is_over(-moved);
  return done;
}

/* Adds the rows of a chunk to their groups; `full` gets those that have many rows now. */
static bool keep_rows(const struct ArrowSchema *types, struct ArrowArray *const *columns, int64_t rows, group ***states,
                      group **full, size_t *n_full) {
  int64_t size = 0;
  bool is_whole = true;
  for (int64_t row = 0; is_whole && row < rows; row++) {
    group *g = group_of(states[row]);
    if (g == NULL) return false;
    if (g->has_failed) continue;
    bool was_full = is_full(g);
    size_t length = g->rows.length;
    for (int64_t i = 0; is_whole && i < types->n_children; i++) is_whole = pack(&g->rows, types->children[i], columns[i], row);
    if (is_whole) g->n_rows++;
    else g->rows.length = length;
    size += (int64_t)(g->rows.length - length);
    if (!was_full && is_full(g)) full[(*n_full)++] = g;
  }
  if (is_over(size))
    for (*n_full = 0; *n_full < (size_t)rows; (*n_full)++) full[*n_full] = *states[*n_full];
  return is_whole;
}

/* The group of all rows of a chunk, if it is worth a call of its own; else NULL. */
static group *only_group(group ***states, int64_t rows) {
  if (rows < MANY_ROWS) return NULL;
  for (int64_t i = 1; i < rows; i++)
    if (states[i] != states[0]) return NULL;
  return group_of(states[0]);
}

static void duckdb_update(duckdb_object info, duckdb_object chunk, group ***states) {
  aggregate *of = DUCKDB(DUCKDB_AGGREGATE_DATA, void *, duckdb_object)(info);
  struct ArrowArray batch;
  char *why = NULL;
  int64_t rows;
  if (!duckdb_batch(&batch, of->function->arguments, chunk, true, &rows)) {
    duckdb_fail_group(info, out_of_memory);
    return;
  }
  group **full = calloc((size_t)rows + 1, sizeof(group *)), *only = only_group(states, rows);
  size_t n_full = 0;
  if (full == NULL) {
    why = out_of_memory;
  } else if (only) {
    if (!only->has_failed && update_group(of, only, &batch, &why)) full[n_full++] = only;
  } else if (!keep_rows(of->function->arguments, batch.children, rows, states, full, &n_full)) {
    why = out_of_memory;
  }
  batch.release(&batch);
  if (why == NULL) duckdb_settle(of, full, n_full, UINT32_MAX, &why);
  free(full);
  if (why != NULL) duckdb_fail_group(info, why);
}

static void duckdb_combine(duckdb_object info, group ***sources, group ***targets, uint64_t n) {
  aggregate *of = DUCKDB(DUCKDB_AGGREGATE_DATA, void *, duckdb_object)(info);
  group **full = calloc(n + 1, sizeof(group *));
  size_t n_full = 0;
  int64_t size = 0;
  char *why = full == NULL ? out_of_memory : NULL;
  for (uint64_t i = 0; why == NULL && i < n; i++) {
    if (*sources[i] == NULL) continue;
    group *to = group_of(targets[i]);
    size_t length = to ? to->rows.length : 0;
    if (to == NULL || !absorb(to, *sources[i])) {
      why = out_of_memory;
      break;
    }
    size += (int64_t)to->rows.length - (int64_t)length;
    if (is_full(to) || to->n_states > MOST_STATES) full[n_full++] = to;
  }
  if (is_over(size) && why == NULL)
    for (n_full = 0; n_full < n; n_full++) full[n_full] = *targets[n_full];
  if (why == NULL) duckdb_settle(of, full, n_full, MOST_STATES, &why);
  free(full);
  if (why != NULL) duckdb_fail_group(info, why);
}

static void duckdb_finish(duckdb_object info, group ***states, duckdb_object vector, uint64_t n, uint64_t offset) {
  aggregate *of = DUCKDB(DUCKDB_AGGREGATE_DATA, void *, duckdb_object)(info);
  duckdb_result result = {vector, of->function->returns};
  int64_t moved = 0;
  group **groups = calloc(n + 1, sizeof(group *));
  char *why = groups == NULL ? out_of_memory : NULL;
  for (uint64_t i = 0; why == NULL && i < n; i++) groups[i] = *states[i];
  if (why == NULL) finish_groups(of, groups, n, duckdb_take, &result, (int64_t)offset, &moved, &why);
  is_over(-moved);
  for (uint64_t i = 0; why == NULL && i < n; i++)
    if (groups[i] && groups[i]->has_failed) duckdb_give_null(vector, (int64_t)(offset + i));
  free(groups);
  if (why != NULL) duckdb_fail_group(info, why);
}

/* ---- Aggregates with a type that DuckDB has not: they say so when they are called ------------------------------- */

static void duckdb_refuse_group(duckdb_object info) {
  aggregate *of = DUCKDB(DUCKDB_AGGREGATE_DATA, void *, duckdb_object)(info);
  duckdb_fail_group(info, duckdb_function_refusal(of->function));
}

static void duckdb_refuse_update(duckdb_object info, duckdb_object chunk, group ***states) {
  (void)chunk, (void)states;
  duckdb_refuse_group(info);
}

static void duckdb_refuse_combine(duckdb_object info, group ***sources, group ***targets, uint64_t n) {
  (void)sources, (void)targets, (void)n;
  duckdb_refuse_group(info);
}

static void duckdb_refuse_finish(duckdb_object info, group ***states, duckdb_object vector, uint64_t n, uint64_t offset) {
  (void)states, (void)vector, (void)n, (void)offset;
  duckdb_refuse_group(info);
}

static bool duckdb_register_aggregate(duckdb_object connection, uint32_t number) {
  const arroyo_udf_function *function = this_plugin()->functions[number];
  aggregate *of = open_aggregate(number);
  if (of == NULL) return false;
  duckdb_object made = DUCKDB(DUCKDB_CREATE_AGGREGATE, duckdb_object, void)();
  char *why = duckdb_function_refusal(function);
  bool fits = why == NULL;
  DUCKDB(DUCKDB_AGGREGATE_NAME, void, duckdb_object, const char *)(made, function->name);
  for (int64_t i = 0; i < function->arguments->n_children; i++)
    with_type(DUCKDB_AGGREGATE_PARAMETER, made,
              fits ? duckdb_type_of(function->arguments->children[i]) : (duckdb_type){DUCKDB_ANY, 0, 0});
  with_type(DUCKDB_AGGREGATE_RETURNS, made, fits ? duckdb_type_of(function->returns) : (duckdb_type){DUCKDB_VARCHAR, 0, 0});
  DUCKDB(DUCKDB_AGGREGATE_NULLS, void, duckdb_object)(made);
  DUCKDB(DUCKDB_AGGREGATE_EXTRA, void, duckdb_object, void *, void (*)(void *))(made, of, close_aggregate);
  DUCKDB(DUCKDB_AGGREGATE_FUNCTIONS, void, duckdb_object, uint64_t (*)(duckdb_object), void (*)(duckdb_object, group **),
         void (*)(duckdb_object, duckdb_object, group ***), void (*)(duckdb_object, group ***, group ***, uint64_t),
         void (*)(duckdb_object, group ***, duckdb_object, uint64_t, uint64_t))(
      made, duckdb_state_size, duckdb_init_state, fits ? duckdb_update : duckdb_refuse_update,
      fits ? duckdb_combine : duckdb_refuse_combine, fits ? duckdb_finish : duckdb_refuse_finish);
  DUCKDB(DUCKDB_AGGREGATE_DESTRUCTOR, void, duckdb_object, void (*)(group ***, uint64_t))(made, duckdb_destroy_states);
  bool is_registered = !DUCKDB(DUCKDB_REGISTER_AGGREGATE, int, duckdb_object, duckdb_object)(connection, made);
  DUCKDB(DUCKDB_DESTROY_AGGREGATE, void, duckdb_object *)(&made);
  free_text(why);
  return is_registered;
}

#endif
