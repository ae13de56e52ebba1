/* polars.h: functions as Polars' expression plugins, ABI 0.1 (tried with 0.20.31 to 2.1.0).
 *
 *     from polars.plugins import register_plugin_function
 *     mph = register_plugin_function(plugin_path="libudf.so", function_name="mph", args=["distance", "air_time"],
 *                                    is_elementwise=True)
 *
 * A column comes in chunks, a literal as one row, which is not repeated if the function takes constants. Columns with equal chunks are passed on chunk by chunk, and copied only
 * if a type must be cast. Each function has one runtime in the process. */
#ifndef ARROYO_UDF_ENGINES_POLARS_H
#define ARROYO_UDF_ENGINES_POLARS_H

#include "calls.h"

#define MOST_COLUMNS 256

static __thread char *polars_error;

static void polars_failed(char *text) {
  if (polars_error) free_text(polars_error);
  polars_error = text;
}

const char *arroyo_udf_polars_error(void) { return polars_error ? polars_error : ""; }

/* NULL: Polars may call the function with these columns. */
static char *polars_refusal(const arroyo_udf_function *function, const struct ArrowSchema *const *fields, size_t n,
                            size_t n_options) {
  const char *plugin = this_plugin()->name, *name = function->name;
  if (!is_callable(function)) return text_of("%s.%s is no function of rows", plugin, name);
  if (n_options) return text_of("%s.%s takes no kwargs", plugin, name);
  if (function->arguments->n_children == 0)
    return text_of("%s.%s takes no columns, so it cannot know how many rows there are", plugin, name);
  if (function->arguments->n_children > MOST_COLUMNS) return text_of("%s.%s takes too many columns", plugin, name);
  if ((int64_t)n != function->arguments->n_children)
    return text_of("%s.%s takes %d columns, not %d", plugin, name, (int)function->arguments->n_children, (int)n);
  for (size_t i = 0; i < n; i++) {
    const struct ArrowSchema *wanted = function->arguments->children[i];
    if (!is_convertible(fields[i], wanted))
      return text_of("%s.%s: %s is %s, and the column \"%s\" %s, which it cannot hold without a loss: cast it", plugin,
                     name, wanted->name, name_of(wanted), fields[i]->name ? fields[i]->name : "", name_of(fields[i]));
  }
  return NULL;
}

void arroyo_udf_polars_field(const char *name, const struct ArrowSchema *fields, size_t n, struct ArrowSchema *out,
                             size_t n_options) {
  const arroyo_udf_function *function = this_plugin()->functions[number_of(name)];
  const struct ArrowSchema *pointers[MOST_COLUMNS] = {NULL};
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) pointers[i] = &fields[i];
  char *why = polars_refusal(function, pointers, n, n_options);
  if (why == NULL && !copy_schema(out, function->returns, n ? fields[0].name : name))
    why = out_of_memory;
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

/* The chunk of a column, or all of them, as an argument. */
static bool polars_argument(struct ArrowArray *argument, const struct ArrowSchema *wanted, polars_series *column,
                            size_t first, size_t n_chunks, int64_t rows, char **why) {
  if (n_chunks == 1 && column->arrays[first]->length == rows && same_type(column->field, wanted)) {
    *argument = *column->arrays[first];
    column->arrays[first]->release = NULL;
    return true;
  }
  column_shape shape = shape_of(wanted);
  if (shape.kind == NESTED && n_chunks == 1 && column->arrays[first]->length == rows) {
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

static bool polars_rows(session *s, polars_series *in, size_t n, polars_series *out, char **why) {
  const struct ArrowSchema *arguments = s->function->arguments;
  polars_series *shape = &in[0];
  for (size_t i = 0; i < n; i++)
    if (polars_length(&in[i]) != 1) shape = &in[i];
  int64_t rows = polars_length(shape);
  bool is_aligned = true;
  for (size_t i = 0; i < n; i++) {
    int64_t own = polars_length(&in[i]);
    if (own != rows && own != 1)
      return *why = text_of("columns have %lld and %lld rows", (long long)rows, (long long)own), false;
    if (own == rows) is_aligned &= has_chunks_of(&in[i], shape);
  }
  size_t n_batches = is_aligned ? shape->n_arrays : 1;
  for (size_t k = 0; k < n_batches; k++) {
    struct ArrowArray batch;
    int64_t here = is_aligned ? shape->arrays[k]->length : rows;
    uint64_t constants = 0;
    if (!make_batch(&batch, arguments->n_children, here)) return *why = out_of_memory, false;
    for (size_t i = 0; i < n && *why == NULL; i++) {
      bool is_part = is_aligned && polars_length(&in[i]) == rows;
      if (rows != 1 && polars_length(&in[i]) == 1 && takes_constant(s->function, i)) {
        if (gather(batch.children[i], shape_of(arguments->children[i]), in[i].arrays, in[i].n_arrays, shape_of(in[i].field), 1))
          constants |= UINT64_C(1) << i;
        else
          *why = out_of_memory;
        continue;
      }
      size_t first = is_part ? k : 0, n_chunks = is_part ? 1 : in[i].n_arrays;
      polars_argument(batch.children[i], arguments->children[i], &in[i], first, n_chunks, here, why);
    }
    if (*why) return batch.release(&batch), false;
    if (!call_with(s, &batch, constants, polars_take, out, why)) return false;
  }
  return true;
}

void arroyo_udf_polars_call(const char *name, polars_series *in, size_t n, size_t n_options, polars_series *out) {
  session *s = shared_session(number_of(name));
  const struct ArrowSchema *fields[MOST_COLUMNS] = {NULL};
  char *why = s == NULL ? out_of_memory : NULL;
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) fields[i] = in[i].field;
  if (why == NULL) why = polars_refusal(s->function, fields, n, n_options);
  if (why == NULL && (out->field = calloc(1, sizeof *out->field)) == NULL) why = out_of_memory;
  if (why == NULL && !copy_schema(out->field, s->function->returns, in[0].field->name)) why = out_of_memory;
  if (why == NULL) polars_rows(s, in, n, out, &why);
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
