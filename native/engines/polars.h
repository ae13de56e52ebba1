/* polars.h: functions as Polars' expression plugins, ABI 0.1 (tried with 0.20.31 to 2.1.0).
 *
 *     from polars.plugins import register_plugin_function
 *     mph = register_plugin_function(plugin_path="libudf.so", function_name="mph", args=["distance", "air_time"],
 *                                    is_elementwise=True)
 *     faster = register_plugin_function(..., args=["distance"], kwargs={"air_time": 60})
 *
 * A column comes in chunks, and a literal as one row, which is not repeated if the function takes it as a constant.
 * Columns with equal chunks are passed on chunk by chunk, and copied only if a type must be cast. Each function has one
 * runtime in the process. */
#ifndef ARROYO_UDF_ENGINES_POLARS_H
#define ARROYO_UDF_ENGINES_POLARS_H

#include "calls.h"
#include "kwargs.h"

#define MOST_COLUMNS 256

static __thread char *polars_error;

static void polars_failed(char *text) {
  if (polars_error) free_text(polars_error);
  polars_error = text;
}

const char *arroyo_udf_polars_error(void) { return polars_error ? polars_error : ""; }

/* The place of an argument with this name; n_children: there is none. */
static int64_t polars_place(const arroyo_udf_function *function, const pickled *name) {
  const struct ArrowSchema *arguments = function->arguments;
  int64_t place = 0;
  while (place < arguments->n_children && ((int64_t)strlen(arguments->children[place]->name) != name->length ||
                                           memcmp(arguments->children[place]->name, name->text, (size_t)name->length)))
    place++;
  return place;
}

/* Which columns and kwargs are the arguments. */
typedef struct {
  kwargs_of_call kwargs;
  int64_t column[MOST_COLUMNS]; /* the number of a column; or -1 minus that of a kwarg */
} polars_arguments;

static char *polars_arranged(polars_arguments *out, const arroyo_udf_function *function, size_t n, const uint8_t *options,
                             size_t n_options) {
  const char *plugin = this_plugin()->name, *name = function->name;
  if (!is_callable(function)) return text_of("%s.%s is no function of rows", plugin, name);
  int64_t wanted = function->arguments->n_children;
  if (wanted == 0)
    return text_of("%s.%s takes no columns, so it cannot know how many rows there are", plugin, name);
  if (wanted > MOST_COLUMNS) return text_of("%s.%s takes too many columns", plugin, name);
  char *why = read_kwargs(&out->kwargs, options, n_options);
  if (why) return why;
  size_t n_kwargs = out->kwargs.n;
  bool is_named[MOST_COLUMNS] = {false};
  for (size_t i = 0; i < n_kwargs; i++) {
    const pickled *kwarg = &out->kwargs.names[i];
    int64_t place = polars_place(function, kwarg);
    if (place == wanted)
      return text_of("%s.%s has no argument %.*s; the first is %s", plugin, name, (int)kwarg->length, kwarg->text,
                     function->arguments->children[0]->name);
    if (is_named[place]) return text_of("%s.%s gets %.*s twice", plugin, name, (int)kwarg->length, kwarg->text);
    is_named[place] = true;
    out->column[place] = -1 - (int64_t)i;
  }
  if ((int64_t)(n + n_kwargs) != wanted)
    return text_of(n_kwargs ? "%s.%s takes %d columns, not %d, beside %d kwargs" : "%s.%s takes %d columns, not %d", plugin,
                   name, (int)(wanted - (int64_t)n_kwargs), (int)n, (int)n_kwargs);
  if (n == 0) return text_of("%s.%s needs a column, which says how many rows there are", plugin, name);
  for (int64_t place = 0, column = 0; place < wanted; place++)
    if (!is_named[place]) out->column[place] = column++;
  return NULL;
}

/* NULL: Polars may call the function with these columns and kwargs. */
static char *polars_refusal(const polars_arguments *given, const arroyo_udf_function *function,
                            const struct ArrowSchema *const *fields) {
  const char *plugin = this_plugin()->name, *name = function->name;
  for (int64_t i = 0; i < function->arguments->n_children; i++) {
    const struct ArrowSchema *wanted = function->arguments->children[i];
    if (given->column[i] < 0) {
      struct ArrowArray array;
      char *why = kwarg_array(&array, wanted, &given->kwargs.values[-1 - given->column[i]]);
      if (why == NULL) array.release(&array);
      else if (why == out_of_memory) return why;
      else {
        char *text = text_of("%s.%s: kwarg %s %s", plugin, name, wanted->name, why);
        free_text(why);
        return text;
      }
      continue;
    }
    const struct ArrowSchema *field = fields[given->column[i]];
    if (!is_convertible(field, wanted))
      return text_of("%s.%s: %s is %s, and the column \"%s\" %s, which it cannot hold without a loss: cast it", plugin,
                     name, wanted->name, name_of(wanted), field->name ? field->name : "", name_of(field));
  }
  return NULL;
}

void arroyo_udf_polars_field(const char *name, const struct ArrowSchema *fields, size_t n, struct ArrowSchema *out,
                             const uint8_t *options, size_t n_options) {
  const arroyo_udf_function *function = this_plugin()->functions[number_of(name)];
  const struct ArrowSchema *pointers[MOST_COLUMNS] = {NULL};
  polars_arguments *given = calloc(1, sizeof *given);
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) pointers[i] = &fields[i];
  char *why = given == NULL ? out_of_memory : polars_arranged(given, function, n, options, n_options);
  if (why == NULL) why = polars_refusal(given, function, pointers);
  if (why == NULL && !copy_schema(out, function->returns, fields[0].name)) why = out_of_memory;
  free(given);
  if (why) polars_failed(why);
}

/* ---- Columns in ------------------------------------------------------------------------------------------------- */

static int64_t polars_length(const polars_series *column) {
  int64_t length = 0;
  for (size_t i = 0; i < column->n_arrays; i++) length += column->arrays[i]->length;
  return length;
}

static bool has_chunks_of(const polars_series *one, const polars_series *other) {
  if (one->n_arrays != other->n_arrays) return false;
  for (size_t i = 0; i < one->n_arrays; i++)
    if (one->arrays[i]->length != other->arrays[i]->length) return false;
  return true;
}

/* The chunk of a column, or all of them, as an argument. is_literal: it has one row, which counts for those of all
 * batches, and so stays where it is. */
static bool polars_argument(struct ArrowArray *argument, const struct ArrowSchema *wanted, polars_series *column,
                            size_t first, size_t n_chunks, int64_t rows, bool is_literal, char **why) {
  bool is_whole = !is_literal && n_chunks == 1 && column->arrays[first]->length == rows;
  if (is_whole && same_type(column->field, wanted)) {
    *argument = *column->arrays[first];
    column->arrays[first]->release = NULL;
    return true;
  }
  column_shape shape = shape_of(wanted);
  if (shape.kind == NESTED && is_whole) {
    if (!converted(argument, wanted, column->arrays[first], column->field)) *why = out_of_memory;
  } else if (shape.kind == NESTED)
    *why = text_of("%s is a %s, which is not copied here: rechunk the frame", wanted->name, name_of(wanted));
  else if (!gather(argument, shape, column->arrays + first, n_chunks, shape_of(column->field), rows))
    *why = out_of_memory;
  return *why == NULL;
}

/* ---- Values out ------------------------------------------------------------------------------------------------- */

static void release_series(polars_series *series) { /* Polars has moved the arrays out */
  for (size_t i = 0; i < series->n_arrays; i++) free(series->arrays[i]);
  free(series->arrays);
  free(series->field);
  series->release = NULL;
  series->private_data = NULL;
}

static void drop_series(polars_series *series) {
  for (size_t i = 0; i < series->n_arrays; i++)
    if (series->arrays[i]->release) series->arrays[i]->release(series->arrays[i]);
  if (series->field && series->field->release) series->field->release(series->field);
  release_series(series);
  memset(series, 0, sizeof *series);
}

static bool polars_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  polars_series *out = to;
  (void)first;
  struct ArrowArray **arrays = realloc(out->arrays, (out->n_arrays + 1) * sizeof *arrays);
  if (arrays) out->arrays = arrays;
  struct ArrowArray *kept = arrays ? malloc(sizeof *kept) : NULL;
  if (kept == NULL) return *why = out_of_memory, false;
  *kept = *values;
  out->arrays[out->n_arrays++] = kept;
  return true;
}

/* in: a column for each argument. */
static bool polars_rows(session *s, polars_series *const *in, polars_series *out, char **why) {
  const struct ArrowSchema *arguments = s->function->arguments;
  size_t n = (size_t)arguments->n_children;
  polars_series *shape = in[0];
  for (size_t i = 0; i < n; i++)
    if (polars_length(in[i]) != 1) shape = in[i];
  int64_t rows = polars_length(shape);
  bool is_aligned = true;
  for (size_t i = 0; i < n; i++) {
    int64_t own = polars_length(in[i]);
    if (own != rows && own != 1)
      return *why = text_of("columns have %lld and %lld rows", (long long)rows, (long long)own), false;
    if (own == rows) is_aligned &= has_chunks_of(in[i], shape);
  }
  size_t n_batches = is_aligned ? shape->n_arrays : 1;
  for (size_t k = 0; k < n_batches; k++) {
    struct ArrowArray batch;
    int64_t here = is_aligned ? shape->arrays[k]->length : rows;
    uint64_t constants = 0;
    if (!make_batch(&batch, arguments->n_children, here)) return *why = out_of_memory, false;
    for (size_t i = 0; i < n && *why == NULL; i++) {
      bool is_part = is_aligned && polars_length(in[i]) == rows;
      size_t first = is_part ? k : 0, n_chunks = is_part ? 1 : in[i]->n_arrays;
      bool is_literal = rows != 1 && polars_length(in[i]) == 1;
      bool is_constant = is_literal && takes_constant(s->function, i);
      constants |= (uint64_t)is_constant << (i & 63);
      polars_argument(batch.children[i], arguments->children[i], in[i], first, n_chunks, is_constant ? 1 : here,
                      is_literal, why);
    }
    if (*why) return batch.release(&batch), false;
    if (!call_with(s, &batch, constants, polars_take, out, why)) return false;
  }
  return true;
}

/* A call: its arguments, and the kwargs as columns with one row. */
typedef struct {
  polars_arguments given;
  polars_series *columns[MOST_COLUMNS];
  polars_series named[MOST_KWARGS];
  struct ArrowArray arrays[MOST_KWARGS];
  struct ArrowArray *chunks[MOST_KWARGS];
} polars_call;

static char *polars_columns(polars_call *made, const arroyo_udf_function *function, polars_series *in) {
  for (int64_t i = 0; i < function->arguments->n_children; i++) {
    int64_t column = made->given.column[i], kwarg = -1 - column;
    made->columns[i] = column < 0 ? &made->named[kwarg] : &in[column];
    if (column >= 0) continue;
    struct ArrowSchema *type = function->arguments->children[i];
    char *why = kwarg_array(&made->arrays[kwarg], type, &made->given.kwargs.values[kwarg]);
    if (why) return why;
    made->chunks[kwarg] = &made->arrays[kwarg];
    made->named[kwarg] = (polars_series){.field = type, .arrays = &made->chunks[kwarg], .n_arrays = 1};
  }
  return NULL;
}

void arroyo_udf_polars_call(const char *name, polars_series *in, size_t n, const uint8_t *options, size_t n_options,
                            polars_series *out) {
  session *s = shared_session(number_of(name));
  const struct ArrowSchema *fields[MOST_COLUMNS] = {NULL};
  polars_call *made = calloc(1, sizeof *made);
  char *why = s == NULL || made == NULL ? out_of_memory : NULL;
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) fields[i] = in[i].field;
  if (why == NULL) why = polars_arranged(&made->given, s->function, n, options, n_options);
  if (why == NULL) why = polars_refusal(&made->given, s->function, fields);
  if (why == NULL) why = polars_columns(made, s->function, in);
  if (why == NULL && (out->field = calloc(1, sizeof *out->field)) == NULL) why = out_of_memory;
  if (why == NULL && !copy_schema(out->field, s->function->returns, in[0].field->name)) why = out_of_memory;
  if (why == NULL) polars_rows(s, made->columns, out, &why);
  for (size_t i = 0; made && i < made->given.kwargs.n; i++)
    if (made->arrays[i].release) made->arrays[i].release(&made->arrays[i]);
  free(made);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < in[i].n_arrays; k++)
      if (in[i].arrays[k]->release) in[i].arrays[k]->release(in[i].arrays[k]);
    if (in[i].field->release) in[i].field->release(in[i].field);
    if (in[i].release) in[i].release(&in[i]);
  }
  if (why) {
    drop_series(out);
    polars_failed(why);
    return;
  }
  out->release = release_series;
  out->private_data = out->field;
}

#endif
