/* native_run.c: batches through functions that were compiled to C. The same in all plugins, so it is compiled once and
 * kept; `native_functions` is generated (native.c).
 *
 * GUARANTEES  Each row has the result that Python gives it. Rows that a function defers go to Python together, as a
 *             batch of their own, and their results take the places of these rows. If most rows are deferred, or the
 *             batch is not one that native code reads, Python gets the batch as it is, and native results are dropped:
 *             native functions have no effects. */
#include "native_batches.h"

/* ---- Deferred rows: a batch of their own ------------------------------------------------------------------------ */

/* Calls for each deferred row, in order: `place` among them, and `row` in the batch. */
#define NATIVE_EACH_DEFERRED(batch, words, place, row)                                                  \
  for (int64_t word = 0, place = 0; word < (words); word++)                                             \
    for (uint64_t left = (batch)->deferred[word]; left != 0; left &= left - 1, place++)                 \
      for (int64_t row = word * 64 + __builtin_ctzll(left), once = 1; once != 0; once = 0)

static void native_release_column(struct ArrowArray *array) {
  free(array->private_data);
  array->release = NULL;
}

static void native_release_rows(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++)
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
  free(array->private_data);
  array->release = NULL;
}

/* One argument of the deferred rows. False: out of memory. */
static bool native_select_column(const native_batch *batch, int64_t words, char format, arroyo_udf_c_column column,
                                 struct ArrowArray *out) {
  const int64_t n = batch->n_deferred, bits = arroyo_udf_c_value_bits(format);
  const bool is_text = format == 'u';
  size_t text_bytes = 0;
  if (is_text) {
    NATIVE_EACH_DEFERRED(batch, words, place, row)
      if (!arroyo_udf_c_is_null(column, row)) text_bytes += arroyo_udf_c_view(column, row).length;
    if (text_bytes > INT32_MAX) return false;
  }
  const size_t validity_bytes = (size_t)arroyo_udf_c_words(n) * 8;
  const size_t value_bytes = ((size_t)((n + is_text) * bits) + 63) / 64 * 8;
  const void **const buffers = (const void **)calloc(1, 4 * sizeof(void *) + validity_bytes + value_bytes + text_bytes);
  if (buffers == NULL) return false;
  uint64_t *const validity = (uint64_t *)(void *)(buffers + 4);
  char *const values = (char *)validity + validity_bytes, *const texts = values + value_bytes;
  int64_t nulls = 0;
  int32_t end = 0;
  NATIVE_EACH_DEFERRED(batch, words, place, row) {
    const bool is_null = arroyo_udf_c_is_null(column, row);
    nulls += is_null;
    if (!is_null) validity[place / 64] |= UINT64_C(1) << (place % 64);
    if (is_text) {
      const arroyo_udf_utf8 view = is_null ? (arroyo_udf_utf8){NULL, 0} : arroyo_udf_c_view(column, row);
      if (view.length != 0) memcpy(texts + end, view.data, view.length);
      end += (int32_t)view.length;
      ((int32_t *)(void *)values)[place + 1] = end;
    } else if (is_null) {
      continue;
    } else if (format == 'b') {
      ((uint64_t *)(void *)values)[place / 64] |=
          (uint64_t)arroyo_udf_c_bit(column.values, column.offset + row) << (place % 64);
    } else {
      memcpy(values + place * (bits / 8), (const char *)column.values + (column.offset + row) * (bits / 8),
             (size_t)(bits / 8));
    }
  }
  buffers[0] = nulls == 0 ? NULL : validity;
  buffers[1] = values;
  buffers[2] = texts;
  *out = (struct ArrowArray){.length = n, .null_count = nulls, .n_buffers = is_text ? 3 : 2, .buffers = buffers,
                             .release = native_release_column, .private_data = (void *)buffers};
  return true;
}

typedef struct native_selection {
  const void *no_buffer[1];
  struct ArrowArray columns[NATIVE_MOST_ARGUMENTS];
  struct ArrowArray *list[NATIVE_MOST_ARGUMENTS];
} native_selection;

/* The format of values that lie in memory as those of a type do: dates as int32, times as int64. */
NATIVE char native_layout(const char *format) {
  return strcmp(format, "tdD") == 0 ? 'i' : format[0] == 't' ? 'l' : format[0];
}

/* The arguments of the deferred rows. False: out of memory. */
static bool native_select(const native_batch *batch, int64_t words, const struct ArrowSchema *arguments,
                          const arroyo_udf_c_column *columns, struct ArrowArray *out) {
  native_selection *const selection = (native_selection *)calloc(1, sizeof *selection);
  if (selection == NULL) return false;
  *out = (struct ArrowArray){.length = batch->n_deferred, .n_buffers = 1, .buffers = selection->no_buffer,
                             .children = selection->list, .release = native_release_rows, .private_data = selection};
  for (; out->n_children < arguments->n_children; out->n_children++) {
    const int64_t i = out->n_children;
    selection->list[i] = &selection->columns[i];
    const char format = native_layout(arguments->children[i]->format);
    if (!native_select_column(batch, words, format, columns[i], &selection->columns[i])) {
      out->release(out);
      return false;
    }
  }
  return true;
}

/* ---- Deferred rows: their results ------------------------------------------------------------------------------- */

/* The results that Python gave. `outcome` and `error` only if a row has failed. */
typedef struct native_answers {
  arroyo_udf_c_column value, outcome, error;
  bool has_errors;
} native_answers;

static const struct ArrowArray *native_field(const struct ArrowArray *results, const struct ArrowSchema *schema,
                                             const char *name) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (strcmp(schema->children[i]->name, name) == 0) return results->children[i];
  return NULL;
}

/* False: these are no results of so many rows. */
static bool native_read_answers(const struct ArrowArray *results, const struct ArrowSchema *schema, char format,
                                int64_t n, native_answers *answers) {
  const int64_t first = results->offset, end = first + n;
  const struct ArrowArray *const outcome = native_field(results, schema, "outcome");
  answers->has_errors = outcome != NULL;
  if (results->length != n) return false;
  if (arroyo_udf_c_read_array(native_field(results, schema, "value"), format, first, end, "", &answers->value) != NULL)
    return false;
  if (outcome == NULL) return true;
  return arroyo_udf_c_read_array(outcome, 'C', first, end, "", &answers->outcome) == NULL &&
         arroyo_udf_c_read_array(native_field(results, schema, "error"), 'u', first, end, "", &answers->error) == NULL;
}

/* The text of a failed row without "plugin.function, row 7: ", in which the row is another one. */
static arroyo_udf_utf8 native_failure(const native_answers *answers, const char *shown, int64_t place) {
  char prefix[600];
  arroyo_udf_utf8 text = arroyo_udf_c_view(answers->error, place);
  const int length = snprintf(prefix, sizeof prefix, "%s, row %lld: ", shown, (long long)place);
  if (length > 0 && (size_t)length < sizeof prefix && text.length >= (size_t)length &&
      memcmp(text.data, prefix, (size_t)length) == 0) {
    text.data += length;
    text.length -= (size_t)length;
  }
  return text;
}

/* Puts the answers' texts between those that are there. Each deferred row is empty before. False: no room. */
static bool native_merge_texts(const native_batch *batch, int64_t words, const native_answers *answers,
                               arroyo_udf_c_result *result) {
  int32_t *const offsets = (int32_t *)result->values;
  arroyo_udf_c_buffer merged = {NULL, 0, 0};
  const char *const old = result->text.data != NULL ? result->text.data : "";
  int64_t done = 0;         /* rows whose offsets are final */
  int32_t from = 0, by = 0; /* the next byte to copy, and by how much offsets grow */
  bool fits = true;
  NATIVE_EACH_DEFERRED(batch, words, place, row) {
    const int32_t here = offsets[row + 1];
    arroyo_udf_utf8 text = {NULL, 0};
    if (!arroyo_udf_c_is_null(answers->value, place)) text = arroyo_udf_c_view(answers->value, place);
    fits = fits && arroyo_udf_c_append(&merged, old + from, (size_t)(here - from)) == NULL &&
           arroyo_udf_c_append(&merged, text.data, text.length) == NULL;
    if (!fits) break;
    for (; done <= row; done++) offsets[done] += by;
    by += (int32_t)text.length;
    from = here;
  }
  fits = fits && arroyo_udf_c_append(&merged, old + from, result->text.length - (size_t)from) == NULL;
  if (fits)
    for (; done <= result->length; done++) offsets[done] += by;
  free(result->text.data);
  result->text = merged;
  return fits;
}

/* Puts the answers into the rows that were deferred. False: no room. */
static bool native_merge(const native_function *function, const native_batch *batch, const native_answers *answers,
                         arroyo_udf_c_result *result) {
  const int64_t words = arroyo_udf_c_words(result->length);
  const size_t width = (size_t)arroyo_udf_c_value_bits(function->returns) / 8;
  if (function->returns == 'u' && !native_merge_texts(batch, words, answers, result)) return false;
  NATIVE_EACH_DEFERRED(batch, words, place, row) {
    if (answers->has_errors && arroyo_udf_c_number_uint8(answers->outcome, place) != ARROYO_UDF_VALUE) {
      const arroyo_udf_utf8 text = native_failure(answers, function->shown, place);
      arroyo_udf_c_failed(result, function->shown, row, text.data, text.length);
    } else if (arroyo_udf_c_is_null(answers->value, place)) {
      arroyo_udf_c_set_null(result, row);
    } else if (function->returns == 'b') {
      const bool value = arroyo_udf_c_bit(answers->value.values, answers->value.offset + place);
      ((uint64_t *)result->values)[row / 64] |= (uint64_t)value << (row % 64);
    } else if (function->returns != 'u') {
      memcpy((char *)result->values + (size_t)row * width,
             (const char *)answers->value.values + (size_t)(answers->value.offset + place) * width, width);
    }
  }
  return !result->out_of_memory;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

/* The columns of a batch. False: Python decides what is wrong with it. */
static bool native_read(const arroyo_udf_function *described, const struct ArrowArray *arguments,
                        const arroyo_udf_batch_context *context, arroyo_udf_c_column *columns) {
  const struct ArrowSchema *const types = described->arguments;
  const uint8_t *outer;
  arroyo_udf_c_column items;
  if (context != NULL && context->size < sizeof *context) return false;
  const uint64_t constants = context != NULL ? context->constants : 0;
  if (!native_are_rows(arguments, types->n_children, &outer)) return false;
  for (int64_t i = 0; i < types->n_children; i++) {
    const bool is_constant = (constants >> i & 1) != 0;
    if (is_constant && types->children[i]->format[0] != 'u') return false;
    if ((is_constant ? arroyo_udf_c_read_constant(arguments->children[i], types->children[i], &columns[i])
                     : arroyo_udf_c_read_column(arguments, arguments->children[i], types->children[i], &columns[i],
                                                &items)) != NULL)
      return false;
    columns[i].outer = outer;
    columns[i].outer_offset = arguments->offset;
  }
  return true;
}

/* Lets Python run the deferred rows, and puts their results into `result`. */
static arroyo_udf_status native_run_deferred(uint32_t number, const native_function *function,
                                             const arroyo_udf_function *described, const native_batch *batch,
                                             const arroyo_udf_c_column *columns,
                                             const arroyo_udf_batch_context *context, arroyo_udf_c_result *result,
                                             arroyo_udf_error *error, native_python_run python) {
  struct ArrowArray selected, results;
  const struct ArrowSchema *schema;
  native_answers answers;
  arroyo_udf_batch_context own;
  if (!native_select(batch, arroyo_udf_c_words(result->length), described->arguments, columns, &selected))
    return arroyo_udf_c_fail(error, ARROYO_UDF_OUT_OF_MEMORY, "%s: out of memory", function->shown);
  if (context != NULL) {
    own = *context;
    own.size = sizeof own;
    own.constants = 0;
    own.idempotency_keys = NULL;
  }
  const arroyo_udf_status status =
      python(number, &selected, context != NULL ? &own : NULL, &results, &schema, error);
  if (status != ARROYO_UDF_OK) {
    selected.release(&selected);
    return status;
  }
  const bool is_readable = native_read_answers(&results, schema, function->returns, batch->n_deferred, &answers);
  const bool fits = is_readable && native_merge(function, batch, &answers, result);
  results.release(&results);
  if (!is_readable) return arroyo_udf_c_fail(error, ARROYO_UDF_INTERNAL, "%s: no results of its rows", function->shown);
  if (!fits) return arroyo_udf_c_fail(error, ARROYO_UDF_OUT_OF_MEMORY, "%s: out of memory", function->shown);
  return ARROYO_UDF_OK;
}

arroyo_udf_status native_run(uint32_t number, const arroyo_udf_function *described, struct ArrowArray *arguments,
                             const arroyo_udf_batch_context *context, struct ArrowArray *results,
                             const struct ArrowSchema **schema, arroyo_udf_error *error, native_python_run python) {
  const native_function *const function = native_functions[number];
  const arroyo_udf_c_function called = {.function = *described, .rows = function->rows};
  arroyo_udf_c_column columns[NATIVE_MOST_ARGUMENTS];
  native_batch batch = {.length = arguments != NULL ? arguments->length : 0};
  arroyo_udf_status status = ARROYO_UDF_OK;
  if (results == NULL || schema == NULL || !native_read(described, arguments, context, columns))
    return python(number, arguments, context, results, schema, error);
  arroyo_udf_c_result *const result = arroyo_udf_c_new_result(arguments->length, described->returns);
  if (result == NULL) return python(number, arguments, context, results, schema, error);
  result->caller = &batch;
  arroyo_udf_c_call_rows(&called, columns, result);
  const int64_t n_deferred = batch.is_dropped ? result->length : batch.n_deferred;
  __atomic_add_fetch(&function->counters->rows, (uint64_t)result->length, __ATOMIC_RELAXED);
  if (n_deferred != 0) __atomic_add_fetch(&function->counters->deferred, (uint64_t)n_deferred, __ATOMIC_RELAXED);
  if (batch.n_deferred != 0 && !batch.is_dropped)
    status = native_run_deferred(number, function, described, &batch, columns, context, result, error, python);
  free(batch.arena.data);
  free(batch.deferred);
  if (batch.is_dropped || status != ARROYO_UDF_OK) {
    arroyo_udf_c_free(result);
    return batch.is_dropped ? python(number, arguments, context, results, schema, error) : status;
  }
  *schema = result->errors != 0 ? function->values_and_errors : function->values;
  arroyo_udf_c_export(result, function->returns, results);
  arguments->release(arguments);
  return ARROYO_UDF_OK;
}

void native_count_rows(uint32_t number, uint64_t *rows, uint64_t *deferred) {
  const native_counters *const counters = native_functions[number]->counters;
  *rows = __atomic_load_n(&counters->rows, __ATOMIC_RELAXED);
  *deferred = __atomic_load_n(&counters->deferred, __ATOMIC_RELAXED);
}
