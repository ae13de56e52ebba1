/* native_alone.h: rows that only Python could run, in a library without Python; a part of native_batches.h.
 *
 * GUARANTEES  A row that is deferred fails. Its error is what Python raises, where the function knows that, without the
 *             traceback; else it says that the row needs Python. Everything else is as in a plugin written in C.
 * ASSUMES     All functions of the plugin are native. */
#ifndef NATIVE_ALONE_H
#define NATIVE_ALONE_H

#define NATIVE_NEEDS_PYTHON                                                                                      \
  "this row needs Python, and the library was built with --no-python: docs/native.md says which rows these are; " \
  "build it without --no-python"

/* A function that is called without a batch of Python's has what it knows of its rows here. */
#define NATIVE_BEGIN(result, name)           \
  native_batch alone = {.shown = (name)}; \
  (result)->caller = &alone
#define NATIVE_END(result, count, counters) native_end_alone(result, count, counters)

static void native_fail(arroyo_udf_c_result *result, int64_t row, const char *text) {
  native_batch *const batch = native_batch_of(result);
  batch->n_deferred++;
  arroyo_udf_c_failed(result, batch->shown, row, text, strlen(text));
}

/* True: go on. */
__attribute__((noinline, cold)) static bool native_defer(arroyo_udf_c_result *result, int64_t row, native_arena *arena) {
  native_fail(result, row, arena->raised != NULL ? arena->raised : NATIVE_NEEDS_PYTHON);
  arena->raised = NULL;
  return true;
}

/* A text cannot be read. True: go on with the next row. */
__attribute__((noinline, cold)) static bool native_unreadable(arroyo_udf_c_result *result, arroyo_udf_c_column column,
                                                              int64_t row) {
  native_fail(result, row, arroyo_udf_c_check_text(column, row));
  return true;
}

static void native_end_alone(arroyo_udf_c_result *result, int64_t count, native_counters *counters) {
  native_batch *const batch = native_batch_of(result);
  __atomic_add_fetch(&counters->rows, (uint64_t)count, __ATOMIC_RELAXED);
  if (batch->n_deferred != 0) __atomic_add_fetch(&counters->deferred, (uint64_t)batch->n_deferred, __ATOMIC_RELAXED);
  if (batch->is_dropped) result->out_of_memory = true;
  free(batch->arena.data);
}

arroyo_udf_status native_run_alone(uint32_t number, const arroyo_udf_function *described, struct ArrowArray *arguments,
                                   const arroyo_udf_batch_context *context, struct ArrowArray *results,
                                   const struct ArrowSchema **schema, arroyo_udf_error *error) {
  static const arroyo_udf_descriptor ONE = {.size = sizeof(arroyo_udf_descriptor), .n_functions = 1};
  const native_function *const function = native_functions[number];
  const arroyo_udf_c_function called = {.function = *described,
                                        .values = function->values,
                                        .values_and_errors = function->values_and_errors,
                                        .rows = function->rows};
  const arroyo_udf_c_function *const functions[] = {&called};
  const arroyo_udf_c_plugin plugin = {&ONE, functions};
  return arroyo_udf_c_run_function(&plugin, 0, arguments, context, results, schema, error);
}

void native_count_rows(uint32_t number, uint64_t *rows, uint64_t *deferred) {
  const native_counters *const counters = native_functions[number]->counters;
  *rows = __atomic_load_n(&counters->rows, __ATOMIC_RELAXED);
  *deferred = __atomic_load_n(&counters->deferred, __ATOMIC_RELAXED);
}

#endif /* NATIVE_ALONE_H */
