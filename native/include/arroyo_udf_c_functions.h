/* arroyo_udf_c_functions.h: what ARROYO_UDF_FUNCTION makes of a function: a constant description, and a loop that calls
 * it for the rows of a batch. A part of arroyo_udf_plugin.h. */
#ifndef ARROYO_UDF_C_FUNCTIONS_H
#define ARROYO_UDF_C_FUNCTIONS_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

/* The builder defines these. */
#ifndef ARROYO_UDF_PLUGIN_NAME
#define ARROYO_UDF_PLUGIN_NAME "unnamed"
#endif
#ifndef ARROYO_UDF_PLUGIN_HASH
#define ARROYO_UDF_PLUGIN_HASH "0"
#endif
#ifndef ARROYO_UDF_TOOLKIT_VERSION
#define ARROYO_UDF_TOOLKIT_VERSION "none"
#endif

/* ---- Errors of a call ------------------------------------------------------------------------------------------- */

static inline void arroyo_udf_c_release_error(arroyo_udf_error* error) {
  free(error->private_data);
  error->private_data = NULL;
  error->text = NULL;
  error->release = NULL;
}

__attribute__((format(printf, 3, 4))) ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static arroyo_udf_status arroyo_udf_c_fail(
    arroyo_udf_error* error, arroyo_udf_status status, const char* format, ...) {
  char text[512];
  va_list arguments;
  if (error == NULL || error->size < ARROYO_UDF_ERROR_SIZE_1) return status;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char* const copy = (char*)malloc(strlen(text) + 1);
  error->text = copy == NULL ? "out of memory" : strcpy(copy, text);
  error->private_data = copy;
  error->release = arroyo_udf_c_release_error;
  error->retryable = status == ARROYO_UDF_OUT_OF_MEMORY ? ARROYO_UDF_YES : 0;
  return status;
}

/* The text of a row with an argument that cannot be read. */
ARROYO_UDF_C_COLD ARROYO_UDF_C_UNUSED static const char* arroyo_udf_c_unreadable(const char* argument,
                                                                                 const char* why) {
  return arroyo_udf_failure("argument %s: %s", argument, why);
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

#define ARROYO_UDF_C_MOST_COLUMNS (1 + ARROYO_UDF_C_MOST_ARGUMENTS) /* a step has a state before its arguments */

struct arroyo_udf_c_async;

typedef struct arroyo_udf_c_function {
  arroyo_udf_function function;
  const struct arroyo_udf_c_async* async; /* NULL unless it is async */
  const struct arroyo_udf_c_function* const* steps; /* of an aggregate: three; else NULL */
  /* NULL for a function that `run` does not call, from here on. */
  const struct ArrowSchema* values; /* the type of results: {value} */
  const struct ArrowSchema* values_and_errors; /* {value, outcome, error} */
  /* Calls the function for rows first ... first + count - 1: for all of them if every bit of `wanted` is set; else for
   * those whose bit is set, and `count` is at most 64. */
  void (*rows)(const arroyo_udf_c_column* columns, arroyo_udf_c_result* result, int64_t first, int64_t count,
               uint64_t wanted);
} arroyo_udf_c_function;

typedef struct arroyo_udf_c_plugin {
  const arroyo_udf_descriptor* descriptor;
  const arroyo_udf_c_function* const* functions; /* in the descriptor's order */
} arroyo_udf_c_plugin;

#define ARROYO_UDF_C_SCHEMA(format, name, flags, n, children) {format, name, NULL, flags, n, children, NULL, NULL, NULL}
ARROYO_UDF_C_UNUSED static const struct ArrowSchema arroyo_udf_c_outcome_schema =
    ARROYO_UDF_C_SCHEMA("C", "outcome", 0, 0, NULL);
ARROYO_UDF_C_UNUSED static const struct ArrowSchema arroyo_udf_c_error_schema =
    ARROYO_UDF_C_SCHEMA("u", "error", ARROW_FLAG_NULLABLE, 0, NULL);

/* Calls the function for the rows that have no null in an argument that is not nullable (rule F3). */
ARROYO_UDF_C_LOOP static void arroyo_udf_c_call_rows(const arroyo_udf_c_function* function,
                                                     const arroyo_udf_c_column* columns, arroyo_udf_c_result* result) {
  const uint8_t* masks[ARROYO_UDF_C_MOST_COLUMNS + 1];
  int64_t offsets[ARROYO_UDF_C_MOST_COLUMNS + 1];
  int n_masks = 0;
  bool outer = false; /* the struct's own validity is among the masks */
  bool none = false;  /* a constant is null */
  for (int64_t i = 0; i < function->function.arguments->n_children; i++) {
    if (function->function.arguments->children[i]->flags & ARROW_FLAG_NULLABLE) continue;
    if (columns[i].validity != NULL && columns[i].mask == 0) {
      none |= !arroyo_udf_c_bit(columns[i].validity, columns[i].offset);
    } else if (columns[i].validity != NULL) {
      masks[n_masks] = columns[i].validity;
      offsets[n_masks++] = columns[i].offset;
    }
    if (columns[i].outer != NULL && !outer) {
      masks[n_masks] = columns[i].outer;
      offsets[n_masks++] = columns[i].outer_offset;
      outer = true;
    }
  }
  if (n_masks == 0 && !none) {
    memset(result->validity, 0xFF, (size_t)arroyo_udf_c_words(result->length) * 8);
    function->rows(columns, result, 0, result->length, UINT64_MAX);
    return;
  }
  int64_t begin = 0; /* the rows from here to `row` are all wanted and have not been called */
  for (int64_t row = 0; row < result->length; row += 64) {
    const int64_t count = result->length - row < 64 ? result->length - row : 64;
    const uint64_t all = UINT64_MAX >> (64 - count);
    uint64_t wanted = none ? 0 : all;
    for (int i = 0; i < n_masks; i++) wanted &= arroyo_udf_c_bits(masks[i], offsets[i] + row, count);
    result->validity[row / 64] = wanted;
    if (wanted == all) continue;
    if (begin < row) function->rows(columns, result, begin, row - begin, UINT64_MAX);
    function->rows(columns, result, row, count, wanted);
    result->nulls += count - __builtin_popcountll(wanted);
    begin = row + count;
  }
  if (begin < result->length) function->rows(columns, result, begin, result->length - begin, UINT64_MAX);
}

ARROYO_UDF_C_ONCE static arroyo_udf_status arroyo_udf_c_run_function(
    const arroyo_udf_c_plugin* plugin, uint32_t number, struct ArrowArray* batch,
    const arroyo_udf_batch_context* context, struct ArrowArray* results, const struct ArrowSchema** schema,
    arroyo_udf_error* error) {
  if (number >= plugin->descriptor->n_functions)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s has %d functions, there is no number %u", ARROYO_UDF_PLUGIN_NAME,
                             (int)plugin->descriptor->n_functions, (unsigned)number);
  const arroyo_udf_c_function* const function = plugin->functions[number];
  const char* const name = function->function.name;
  const struct ArrowSchema* const arguments = function->function.arguments;
  arroyo_udf_c_column columns[ARROYO_UDF_C_MOST_COLUMNS], items[ARROYO_UDF_C_MOST_COLUMNS];
  const uint8_t* outer;
  if (function->rows == NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_NOT_IMPLEMENTED,
                             "plugin %s, function %s: run is not for this kind of function; start an async function, "
                             "and run the steps of an aggregate",
                             ARROYO_UDF_PLUGIN_NAME, name);
  if (context != NULL && context->size < ARROYO_UDF_BATCH_CONTEXT_SIZE_1)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: batch context of size %llu, where version %d has %d; set `size`",
                             ARROYO_UDF_PLUGIN_NAME, name, (unsigned long long)context->size, ARROYO_UDF_ABI_VERSION,
                             ARROYO_UDF_BATCH_CONTEXT_SIZE_1);
  const uint64_t constants = context != NULL && context->size >= sizeof *context ? context->constants : 0;
  if ((constants & ~function->function.constants) != 0)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: constants %#llx, and it takes %#llx", ARROYO_UDF_PLUGIN_NAME,
                             name, (unsigned long long)constants, (unsigned long long)function->function.constants);
  if (batch == NULL || batch->release == NULL || results == NULL || schema == NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: arguments, results or schema is missing or released",
                             ARROYO_UDF_PLUGIN_NAME, name);
  if (batch->n_children != arguments->n_children || batch->children == NULL || batch->n_buffers != 1 ||
      batch->buffers == NULL || batch->dictionary != NULL)
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: the batch must be a struct array with %lld children, one per "
                             "argument",
                             ARROYO_UDF_PLUGIN_NAME, name, (long long)arguments->n_children);
  if (batch->length < 0 || batch->offset < 0 || batch->offset > INT64_MAX - batch->length ||
      !arroyo_udf_c_validity(batch, &outer))
    return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT,
                             "plugin %s, function %s: the batch has a negative length or offset, or nulls without a "
                             "validity buffer",
                             ARROYO_UDF_PLUGIN_NAME, name);
  for (int64_t i = 0; i < arguments->n_children; i++) {
    const char* const wrong =
        (constants >> i & 1) != 0
            ? arroyo_udf_c_read_constant(batch->children[i], arguments->children[i], &columns[i])
            : arroyo_udf_c_read_column(batch, batch->children[i], arguments->children[i], &columns[i], &items[i]);
    if (wrong != NULL)
      return arroyo_udf_c_fail(error, ARROYO_UDF_INVALID_ARGUMENT, "plugin %s, function %s: argument %s %s",
                               ARROYO_UDF_PLUGIN_NAME, name, arguments->children[i]->name, wrong);
    columns[i].outer = outer;
    columns[i].outer_offset = batch->offset;
  }
  arroyo_udf_c_result* const result = arroyo_udf_c_new_result(batch->length, function->function.returns);
  if (result != NULL) arroyo_udf_c_call_rows(function, columns, result);
  if (result == NULL || result->out_of_memory) {
    if (result != NULL) arroyo_udf_c_free(result);
    return arroyo_udf_c_fail(error, ARROYO_UDF_OUT_OF_MEMORY, "plugin %s, function %s: out of memory",
                             ARROYO_UDF_PLUGIN_NAME, name);
  }
  *schema = result->errors != 0 ? function->values_and_errors : function->values;
  arroyo_udf_c_export(result, function->function.returns->format[0], results);
  batch->release(batch);
  return ARROYO_UDF_OK;
}

/* ---- Declarations: macros -------------------------------------------------------------------------------------- */

/* ARROYO_UDF_C_EACH(m, s, x, a, b, c) is m(x, a) s() m(x, b) s() m(x, c). */
#define ARROYO_UDF_C_EACH_1(m, s, x, a) m(x, a)
#define ARROYO_UDF_C_EACH_2(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_1(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_3(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_2(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_4(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_3(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_5(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_4(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_6(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_5(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_7(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_6(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_8(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_7(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_9(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_8(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_10(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_9(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_11(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_10(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_12(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_11(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_13(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_12(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_14(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_13(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_15(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_14(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_EACH_16(m, s, x, a, ...) m(x, a) s() ARROYO_UDF_C_EACH_15(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define ARROYO_UDF_C_COUNT(...) \
  ARROYO_UDF_C_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ARROYO_UDF_C_PASTE_(a, b) a##b
#define ARROYO_UDF_C_PASTE(a, b) ARROYO_UDF_C_PASTE_(a, b)
#define ARROYO_UDF_C_EACH(m, s, x, ...) \
  ARROYO_UDF_C_PASTE(ARROYO_UDF_C_EACH_, ARROYO_UDF_C_COUNT(__VA_ARGS__))(m, s, x, __VA_ARGS__)
#define ARROYO_UDF_C_COMMA() ,
#define ARROYO_UDF_C_NOTHING()
#define ARROYO_UDF_C_UNPACK(...) __VA_ARGS__
#define ARROYO_UDF_C_TYPE_OF(type, name) type
#define ARROYO_UDF_C_NAME_OF(type, name) name
#define ARROYO_UDF_C_STRING_(text) #text
#define ARROYO_UDF_C_STRING(text) ARROYO_UDF_C_STRING_(text)
/* ARROYO_UDF_C_OF(load, (int64, distance)) is arroyo_udf_c_load_int64. */
#define ARROYO_UDF_C_OF(what, argument) ARROYO_UDF_C_PASTE(arroyo_udf_c_##what##_, ARROYO_UDF_C_TYPE_OF argument)
#define ARROYO_UDF_C_COLUMN_OF(argument) ARROYO_UDF_C_PASTE(arroyo_udf_c_column_, ARROYO_UDF_C_NAME_OF argument)
#define ARROYO_UDF_C_SCHEMA_OF(function, argument) \
  ARROYO_UDF_C_PASTE(arroyo_udf_c_##function##_argument_, ARROYO_UDF_C_NAME_OF argument)

/* Each argument becomes a parameter, a constant schema, the schema's address, a local column, a value in the call. */
#define ARROYO_UDF_C_PARAMETER(function, argument) ARROYO_UDF_C_OF(parameter, argument) ARROYO_UDF_C_NAME_OF argument
#define ARROYO_UDF_C_ARGUMENT(function, argument)                              \
  static const struct ArrowSchema ARROYO_UDF_C_SCHEMA_OF(function, argument) = \
      ARROYO_UDF_C_SCHEMA(ARROYO_UDF_C_OF(format, argument),                   \
                          ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument),  \
                          ARROYO_UDF_C_OF(flags, argument), 0, NULL);
#define ARROYO_UDF_C_CHILD(function, argument) (struct ArrowSchema*)&ARROYO_UDF_C_SCHEMA_OF(function, argument)
/* Loops without constants are compiled by themselves: with the mask, one over texts takes a third longer. */
#define ARROYO_UDF_C_COLUMN(function, argument)                      \
  arroyo_udf_c_column ARROYO_UDF_C_COLUMN_OF(argument) = *columns++; \
  if (!has_constants) ARROYO_UDF_C_COLUMN_OF(argument).mask = -1;
#define ARROYO_UDF_C_CHECK(function, argument)                                                        \
  if (failure == NULL) {                                                                              \
    failure = ARROYO_UDF_C_OF(check, argument)(ARROYO_UDF_C_COLUMN_OF(argument), row);                \
    if (__builtin_expect(failure != NULL, 0))                                                         \
      failure = arroyo_udf_c_unreadable(ARROYO_UDF_C_STRING(ARROYO_UDF_C_NAME_OF argument), failure); \
  }
#define ARROYO_UDF_C_VALUE(function, argument) ARROYO_UDF_C_OF(load, argument)(ARROYO_UDF_C_COLUMN_OF(argument), row)

/* One row. `id` begins the names of what belongs to it, and `called` is a function of C; the text of an error has the
 * name `shown`. */
#define ARROYO_UDF_C_ROW(id, called, shown, result_type, ...)                                               \
  {                                                                                                         \
    arroyo_udf_c_out_##result_type value = arroyo_udf_c_begin_##result_type(sink);                          \
    const char* failure = NULL;                                                                             \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_CHECK, ARROYO_UDF_C_NOTHING, id, __VA_ARGS__)                            \
    if (failure == NULL)                                                                                    \
      failure = called(ARROYO_UDF_C_EACH(ARROYO_UDF_C_VALUE, ARROYO_UDF_C_COMMA, id, __VA_ARGS__), &value); \
    if (failure == NULL) failure = arroyo_udf_c_store_##result_type(sink, row, value);                      \
    if (failure != NULL) {                                                                                  \
      arroyo_udf_c_skip_##result_type(sink, row);                                                           \
      arroyo_udf_c_no_value(result, ARROYO_UDF_PLUGIN_NAME "." shown, row, failure);                        \
    }                                                                                                       \
  }
#define ARROYO_UDF_C_ROWS(id, called, shown, result_type, ...)                                          \
  static inline __attribute__((always_inline)) void arroyo_udf_c_##id##_each(                           \
      const arroyo_udf_c_column* columns, arroyo_udf_c_result* result, int64_t first, int64_t count,    \
      uint64_t wanted, bool has_constants) {                                                            \
    ARROYO_UDF_C_EACH(ARROYO_UDF_C_COLUMN, ARROYO_UDF_C_NOTHING, id, __VA_ARGS__)                       \
    const arroyo_udf_c_sink sink = arroyo_udf_c_sink_of(result);                                        \
    if (wanted == UINT64_MAX) {                                                                         \
      for (int64_t row = first; row < first + count; row++)                                             \
        ARROYO_UDF_C_ROW(id, called, shown, result_type, __VA_ARGS__)                                   \
      return;                                                                                           \
    }                                                                                                   \
    for (int64_t row = first; row < first + count; row++)                                               \
      if (wanted >> (row - first) & 1)                                                                  \
        ARROYO_UDF_C_ROW(id, called, shown, result_type, __VA_ARGS__)                                   \
      else                                                                                              \
        arroyo_udf_c_skip_##result_type(sink, row);                                                     \
  }                                                                                                     \
  static void arroyo_udf_c_##id##_loop(const arroyo_udf_c_column* columns, arroyo_udf_c_result* result, \
                                       int64_t first, int64_t count, uint64_t wanted) {                 \
    if (arroyo_udf_c_has_constants(columns, ARROYO_UDF_C_COUNT(__VA_ARGS__)))                           \
      arroyo_udf_c_##id##_each(columns, result, first, count, wanted, true);                            \
    else                                                                                                \
      arroyo_udf_c_##id##_each(columns, result, first, count, wanted, false);                           \
  }

/* What a function takes and answers, as `describe` shows it; ... after a result's type are the number of its children,
 * and their list. */
#define ARROYO_UDF_C_ARGUMENTS(id, ...)                                                \
  ARROYO_UDF_C_EACH(ARROYO_UDF_C_ARGUMENT, ARROYO_UDF_C_NOTHING, id, __VA_ARGS__)      \
  static struct ArrowSchema* const arroyo_udf_c_##id##_children[] = {                  \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_CHILD, ARROYO_UDF_C_COMMA, id, __VA_ARGS__)};     \
  static const struct ArrowSchema arroyo_udf_c_##id##_arguments = ARROYO_UDF_C_SCHEMA( \
      "+s", "", 0, ARROYO_UDF_C_COUNT(__VA_ARGS__), (struct ArrowSchema**)arroyo_udf_c_##id##_children);
#define ARROYO_UDF_C_RETURNS(id, result_type, ...)              \
  static const struct ArrowSchema arroyo_udf_c_##id##_returns = \
      ARROYO_UDF_C_SCHEMA(arroyo_udf_c_format_##result_type, "", arroyo_udf_c_flags_##result_type, __VA_ARGS__);
#define ARROYO_UDF_C_SIGNATURE(id, result_type, ...) \
  ARROYO_UDF_C_ARGUMENTS(id, __VA_ARGS__)            \
  ARROYO_UDF_C_RETURNS(id, result_type, 0, NULL)

/* A function that `run` calls, by its loop over rows. Not constant, because of the aggregates beside it: see
 * arroyo_udf_c_table.h. */
#define ARROYO_UDF_C_RUN(id, shown, kind, documentation, volatility, result_type, ...)                    \
  static const struct ArrowSchema arroyo_udf_c_##id##_value =                                             \
      ARROYO_UDF_C_SCHEMA(arroyo_udf_c_format_##result_type, "value", ARROW_FLAG_NULLABLE, __VA_ARGS__);  \
  static struct ArrowSchema* const arroyo_udf_c_##id##_fields[] = {                                       \
      (struct ArrowSchema*)&arroyo_udf_c_##id##_value, (struct ArrowSchema*)&arroyo_udf_c_outcome_schema, \
      (struct ArrowSchema*)&arroyo_udf_c_error_schema};                                                   \
  static const struct ArrowSchema arroyo_udf_c_##id##_values =                                            \
      ARROYO_UDF_C_SCHEMA("+s", "", 0, 1, (struct ArrowSchema**)arroyo_udf_c_##id##_fields);              \
  static const struct ArrowSchema arroyo_udf_c_##id##_values_and_errors =                                 \
      ARROYO_UDF_C_SCHEMA("+s", "", 0, 3, (struct ArrowSchema**)arroyo_udf_c_##id##_fields);              \
  static arroyo_udf_c_function arroyo_udf_c_##id##_function = {                                           \
      {sizeof(arroyo_udf_function), shown, kind, 0, &arroyo_udf_c_##id##_arguments,                       \
       &arroyo_udf_c_##id##_returns, NULL, documentation, volatility, 0, 0, 0, 0},                           \
      NULL,                                                                                               \
      NULL,                                                                                               \
      &arroyo_udf_c_##id##_values,                                                                        \
      &arroyo_udf_c_##id##_values_and_errors,                                                             \
      arroyo_udf_c_##id##_loop}

#define ARROYO_UDF_C_FUNCTION(name, documentation, volatility, result_type, ...)                     \
  const char* name(ARROYO_UDF_C_EACH(ARROYO_UDF_C_PARAMETER, ARROYO_UDF_C_COMMA, name, __VA_ARGS__), \
                   arroyo_udf_c_out_##result_type* out);                                             \
  ARROYO_UDF_C_SIGNATURE(name, result_type, __VA_ARGS__)                                             \
  ARROYO_UDF_C_ROWS(name, name, #name, result_type, __VA_ARGS__)                                     \
  ARROYO_UDF_C_RUN(name, #name, ARROYO_UDF_SYNC, documentation, volatility, result_type, 0, NULL)
/* One more expansion, because `bool` may be a macro. */
#define ARROYO_UDF_C_FUNCTION_(name, ...) ARROYO_UDF_C_FUNCTION(name, __VA_ARGS__)

#endif /* ARROYO_UDF_C_FUNCTIONS_H */
