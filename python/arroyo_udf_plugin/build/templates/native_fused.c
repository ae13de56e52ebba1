/* native_fused.c: calls that take each other's values, in one pass over a batch. The same in all plugins, as native_run.c.
 *
 * GUARANTEES  Each row has the values that the calls give it one after the other. What only later calls want lies in memory
 *             for a few hundred rows, so that it stays in the processor's first cache. A row that a call defers comes to
 *             none of the later ones, and has no values.
 * ASSUMES     As native_batches.h. */
#include "native_batches.h"

#define NATIVE_PART 512 /* rows that go through all calls before the next ones; whole words of 64 */

typedef struct native_call {
  const native_function *function;
  const arroyo_udf_function *described;
  const int32_t *sources; /* of its arguments: as in arroyo_udf_fused_call */
  bool is_text;
  int64_t value_bits;
  arroyo_udf_c_result *wanted; /* the values of the batch; NULL: only later calls want them */
  int64_t nulls, left_out;     /* rows whose value is null, and those without a call; none that is deferred */
  bool has_condition;
  /* Of the rows at hand: */
  arroyo_udf_c_column columns[NATIVE_MOST_ARGUMENTS], condition;
  arroyo_udf_c_result part;
  arroyo_udf_c_column values; /* for later calls */
  uint64_t validity[NATIVE_PART / 64], room[NATIVE_PART + 1];
} native_call;

/* ---- What is given ---------------------------------------------------------------------------------------------- */

static const struct ArrowSchema native_condition = ARROYO_UDF_C_SCHEMA("b", "condition", ARROW_FLAG_NULLABLE, 0, NULL);

/* Whether an argument can take this call's values. */
static bool native_gives(const native_call *call, const struct ArrowSchema *argument) {
  return strcmp(call->described->returns->format, argument->format) == 0;
}

/* Fills in calls, without columns. Returns NULL, or what is wrong. */
static const char *native_take_calls(const arroyo_udf_function *const *described, uint32_t n_functions,
                                     const arroyo_udf_fused_call *given, uint32_t n_calls, int64_t n_columns,
                                     native_call *calls) {
  for (uint32_t i = 0; i < n_calls; i++) {
    native_call *const call = &calls[i];
    if (given[i].function >= n_functions || native_functions[given[i].function] == NULL)
      return "a function is not native";
    call->function = native_functions[given[i].function];
    call->described = described[given[i].function];
    call->sources = given[i].arguments;
    call->has_condition = given[i].condition >= 0;
    call->is_text = call->function->returns == 'u';
    call->value_bits = arroyo_udf_c_value_bits(call->function->returns);
    if (given[i].condition >= n_columns) return "a condition is no column";
    const struct ArrowSchema *const types = call->described->arguments;
    for (int64_t k = 0; k < types->n_children; k++) {
      const int64_t source = call->sources[k], before = -1 - source;
      if (source >= n_columns || before >= (int64_t)i) return "an argument is neither a column nor an earlier call";
      if (source < 0 && !native_gives(&calls[before], types->children[k])) return "an argument has another type";
    }
  }
  return NULL;
}

static bool native_read_one(const struct ArrowArray *columns, int32_t number, const struct ArrowSchema *type,
                            const uint8_t *outer, arroyo_udf_c_column *column) {
  arroyo_udf_c_column items;
  const bool is_read = arroyo_udf_c_read_column(columns, columns->children[number], type, column, &items) == NULL;
  column->outer = outer;
  column->outer_offset = columns->offset;
  return is_read;
}

/* Reads the columns of the calls. False: Python decides what is wrong with them. */
static bool native_read_columns(const struct ArrowArray *columns, const arroyo_udf_fused_call *given,
                                native_call *calls, uint32_t n_calls) {
  const uint8_t *outer;
  if (!native_are_rows(columns, columns->n_children, &outer)) return false;
  for (uint32_t i = 0; i < n_calls; i++) {
    native_call *const call = &calls[i];
    const struct ArrowSchema *const types = call->described->arguments;
    for (int64_t k = 0; k < types->n_children; k++)
      if (call->sources[k] >= 0 &&
          !native_read_one(columns, call->sources[k], types->children[k], outer, &call->columns[k]))
        return false;
    if (call->has_condition &&
        !native_read_one(columns, given[i].condition, &native_condition, outer, &call->condition))
      return false;
  }
  return true;
}

/* ---- Some rows -------------------------------------------------------------------------------------------------- */

/* Where the values of the next rows go. */
static void native_begin_part(native_call *call, const native_batch *batch) {
  arroyo_udf_c_result *const part = &call->part;
  part->nulls = 0;
  part->validity = call->validity;
  part->values = call->room;
  if (call->wanted != NULL) {
    part->validity = call->wanted->validity + batch->first / 64;
    part->values = (char *)call->wanted->values + batch->first * call->value_bits / 8;
  } else if (call->is_text) {
    part->text.length = 0;
    *(int32_t *)part->values = 0;
  } else if (call->value_bits == 1) {
    memset(part->values, 0, NATIVE_PART / 8);
  }
}

/* Those of rows `row` to row + count - 1, at most 64, that are not null in a column. */
static uint64_t native_valid(const arroyo_udf_c_column *column, int64_t row, int64_t count) {
  uint64_t valid = UINT64_MAX >> (64 - count);
  if (column->validity != NULL) valid &= arroyo_udf_c_bits(column->validity, column->offset + row, count);
  if (column->outer != NULL) valid &= arroyo_udf_c_bits(column->outer, column->outer_offset + row, count);
  return valid;
}

/* Those for which the condition holds. */
static uint64_t native_met(const native_call *call, int64_t row, int64_t count) {
  const arroyo_udf_c_column *const column = &call->condition;
  if (!call->has_condition) return UINT64_MAX >> (64 - count);
  return native_valid(column, row, count) & arroyo_udf_c_bits(column->values, column->offset + row, count);
}

/* Those that the call may be made for (rule F3). */
static uint64_t native_wanted(const native_call *call, int64_t row, int64_t count) {
  const struct ArrowSchema *const types = call->described->arguments;
  uint64_t wanted = native_met(call, row, count);
  for (int64_t i = 0; i < types->n_children; i++)
    if (!(types->children[i]->flags & ARROW_FLAG_NULLABLE)) wanted &= native_valid(&call->columns[i], row, count);
  return wanted;
}

static bool native_wants_all(const native_call *call) {
  const struct ArrowSchema *const types = call->described->arguments;
  if (call->has_condition) return false;
  for (int64_t i = 0; i < types->n_children; i++) {
    const bool may_be_null = call->columns[i].validity != NULL || call->columns[i].outer != NULL;
    if (may_be_null && !(types->children[i]->flags & ARROW_FLAG_NULLABLE)) return false;
  }
  return true;
}

/* Makes the call for the rows at hand that no call before it has deferred. */
static void native_make_call(native_call *call, const native_batch *batch, int64_t count) {
  const uint64_t *const deferred = batch->deferred + batch->first / 64;
  int64_t begin = 0; /* the rows from here to `row` are all wanted and have not been called */
  if (batch->n_deferred == 0 && native_wants_all(call)) {
    memset(call->part.validity, 0xFF, (size_t)arroyo_udf_c_words(count) * 8);
    call->function->rows(call->columns, &call->part, 0, count, UINT64_MAX);
    return;
  }
  for (int64_t row = 0; row < count; row += 64) {
    const int64_t n = count - row < 64 ? count - row : 64;
    const uint64_t wanted = native_wanted(call, row, n) & ~deferred[row / 64];
    call->part.validity[row / 64] = wanted;
    if (wanted == UINT64_MAX >> (64 - n)) continue;
    if (begin < row) call->function->rows(call->columns, &call->part, begin, row - begin, UINT64_MAX);
    call->function->rows(call->columns, &call->part, row, n, wanted);
    call->part.nulls += n - __builtin_popcountll(wanted);
    begin = row + n;
  }
  if (begin < count) call->function->rows(call->columns, &call->part, begin, count - begin, UINT64_MAX);
}

/* The values of the rows at hand, as a column. */
static void native_end_call(native_call *call, int64_t count) {
  arroyo_udf_c_column *const values = &call->values;
  *values = (arroyo_udf_c_column){.values = call->part.values, .text = "", .mask = -1};
  if (call->part.nulls != 0) values->validity = (const uint8_t *)call->part.validity;
  if (!call->is_text || call->part.text.length == 0) return;
  values->text = call->part.text.data;
  values->last = (int32_t)call->part.text.length;
  arroyo_udf_c_find_ascii(values, 0, count);
}

/* Counts nulls, now that it is known which rows are deferred. */
static void native_end_part(native_call *call, const native_batch *batch, int64_t count) {
  const uint64_t *const deferred = batch->deferred + batch->first / 64;
  if (batch->n_deferred == 0 && !call->has_condition) {
    call->nulls += call->part.nulls;
    return;
  }
  for (int64_t row = 0; row < count; row += 64) {
    const int64_t n = count - row < 64 ? count - row : 64;
    const uint64_t passed = (UINT64_MAX >> (64 - n)) & ~deferred[row / 64];
    uint64_t *const validity = &call->part.validity[row / 64];
    *validity &= passed;
    call->nulls += __builtin_popcountll(passed & ~*validity);
    call->left_out += __builtin_popcountll(passed & ~native_met(call, row, n));
  }
}

static void native_go_on(arroyo_udf_c_column *column, int64_t count) {
  column->offset += count;
  column->outer_offset += count;
}

/* Takes the rows at hand through all calls. */
static void native_run_part(native_call *calls, uint32_t n_calls, const native_batch *batch, int64_t count) {
  for (uint32_t i = 0; i < n_calls; i++) {
    native_call *const call = &calls[i];
    const int64_t n_arguments = call->described->arguments->n_children;
    native_begin_part(call, batch);
    for (int64_t k = 0; k < n_arguments; k++)
      if (call->sources[k] < 0) call->columns[k] = calls[-1 - call->sources[k]].values;
    native_make_call(call, batch, count);
    if (batch->is_dropped) return;
    native_end_call(call, count);
  }
  for (uint32_t i = 0; i < n_calls; i++) {
    native_end_part(&calls[i], batch, count);
    for (int64_t k = 0; k < calls[i].described->arguments->n_children; k++) native_go_on(&calls[i].columns[k], count);
    native_go_on(&calls[i].condition, count);
  }
}

/* ---- run_fused -------------------------------------------------------------------------------------------------- */

/* False: out of memory. */
static bool native_make_results(native_call *calls, const arroyo_udf_fused_call *given, uint32_t n_calls,
                                native_batch *batch) {
  for (uint32_t i = 0; i < n_calls; i++) {
    calls[i].part.caller = batch;
    if (given[i].is_wanted != ARROYO_UDF_YES) continue;
    calls[i].wanted = arroyo_udf_c_new_result(batch->length, calls[i].described->returns);
    if (calls[i].wanted == NULL) return false;
  }
  return true;
}

/* Hands the wanted values out. */
static void native_export_results(native_call *calls, uint32_t n_calls, struct ArrowArray *results,
                                  const native_batch *batch) {
  for (uint32_t i = 0; i < n_calls; i++) {
    native_call *const call = &calls[i];
    if (call->wanted == NULL) continue;
    call->wanted->text = call->part.text;
    call->wanted->nulls = call->nulls + batch->n_deferred;
    arroyo_udf_c_export(call->wanted, call->function->returns, results++);
    call->wanted = NULL;
    call->part.text.data = NULL;
  }
}

static void native_free_calls(native_call *calls, uint32_t n_calls) {
  for (uint32_t i = 0; i < n_calls; i++) {
    free(calls[i].part.text.data);
    free(calls[i].wanted);
  }
  free(calls);
}

arroyo_udf_status native_run_fused(const arroyo_udf_function *const *described, uint32_t n_functions,
                                   const arroyo_udf_fused_call *given, uint32_t n_calls,
                                   const struct ArrowArray *columns, struct ArrowArray *results, uint64_t *deferred,
                                   uint64_t *counts, arroyo_udf_error *error) {
  if (given == NULL || n_calls == 0 || columns == NULL || results == NULL || deferred == NULL || counts == NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT, "run_fused: calls, columns or results are missing");
  native_batch batch = {.length = columns->length, .deferred = deferred};
  native_call *const calls = (native_call *)calloc(n_calls, sizeof *calls);
  const char *const wrong =
      calls == NULL ? NULL : native_take_calls(described, n_functions, given, n_calls, columns->n_children, calls);
  if (wrong != NULL) {
    free(calls);
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT, "run_fused: %s", wrong);
  }
  batch.is_dropped = calls != NULL && !native_read_columns(columns, given, calls, n_calls);
  if (calls == NULL || (!batch.is_dropped && !native_make_results(calls, given, n_calls, &batch))) {
    if (calls != NULL) native_free_calls(calls, n_calls);
    return arroyo_udf_c_fail(error, ARROYO_UDF_OUT_OF_MEMORY, "run_fused: out of memory");
  }
  if (!batch.is_dropped) memset(deferred, 0, (size_t)arroyo_udf_c_words(batch.length) * 8);
  for (; batch.first < batch.length && !batch.is_dropped; batch.first += NATIVE_PART) {
    batch.end = batch.length - batch.first < NATIVE_PART ? batch.length : batch.first + NATIVE_PART;
    native_run_part(calls, n_calls, &batch, batch.end - batch.first);
  }
  free(batch.arena.data);
  const bool has_results = !batch.is_dropped && batch.n_deferred < batch.length;
  counts[0] = (uint64_t)(has_results ? batch.n_deferred : batch.length);
  for (uint32_t i = 0; i < n_calls && has_results; i++) {
    counts[1 + i] = (uint64_t)calls[i].nulls;
    const int64_t n_rows = batch.length - batch.n_deferred - calls[i].left_out;
    __atomic_add_fetch(&calls[i].function->counters->rows, (uint64_t)n_rows, __ATOMIC_RELAXED);
  }
  if (has_results) native_export_results(calls, n_calls, results, &batch);
  native_free_calls(calls, n_calls);
  return ARROYO_UDF_OK;
}
