/* daft.h: functions as Daft's native extensions, ABI 1 (tried with 0.7.26; experimental there).
 *
 *     daft.load_extension("libudf.so")
 *
 * Each function has one runtime in the process. */
#ifndef ARROYO_UDF_ENGINES_DAFT_H
#define ARROYO_UDF_ENGINES_DAFT_H

#include "calls.h"

typedef struct {
  const void *context;
  const char *(*name)(const void *context);
  int (*returns)(const void *context, const struct ArrowSchema *arguments, size_t n, struct ArrowSchema *result,
                 char **why);
  int (*call)(const void *context, const struct ArrowArray *arguments, const struct ArrowSchema *types, size_t n,
              struct ArrowArray *result, struct ArrowSchema *type, char **why);
  void (*end)(void *context);
} daft_function;

struct daft_session {
  void *context;
  int (*define_function)(void *context, daft_function function);
};

static const arroyo_udf_function *daft_described(const void *context) {
  return this_plugin()->functions[(uintptr_t)context];
}

static const char *daft_name(const void *context) { return daft_described(context)->name; }

static int daft_returns(const void *context, const struct ArrowSchema *arguments, size_t n, struct ArrowSchema *result,
                        char **why) {
  const arroyo_udf_function *function = daft_described(context);
  const struct ArrowSchema *wanted = function->arguments;
  if ((int64_t)n != wanted->n_children) {
    *why = text_of("%s takes %d arguments, not %d", function->name, (int)wanted->n_children, (int)n);
    return 1;
  }
  for (size_t i = 0; i < n; i++)
    if (!is_convertible(&arguments[i], wanted->children[i])) {
      *why = text_of("%s: %s is %s, and the column %s, which it cannot hold without a loss: cast it", function->name,
                     wanted->children[i]->name, name_of(wanted->children[i]), name_of(&arguments[i]));
      return 1;
    }
  if (copy_schema(result, function->returns, function->name)) return 0;
  *why = out_of_memory;
  return 1;
}

/* Results that come in several arrays are put together. */
typedef struct {
  struct ArrowArray *arrays[64];
  struct ArrowArray own[64];
  size_t n;
  const struct ArrowSchema *type;
} daft_results;

static bool daft_join(daft_results *results, char **why) {
  struct ArrowArray joined;
  int64_t rows = 0;
  column_shape shape = shape_of(results->type);
  for (size_t i = 0; i < results->n; i++) rows += results->own[i].length;
  if (shape.kind == NESTED)
    return *why = text_of("a %s in several parts is not put together", name_of(results->type)), false;
  /* One row in all is no constant: then there is one array. */
  if (!gather(&joined, shape, results->arrays, results->n, shape, rows)) return *why = out_of_memory, false;
  for (size_t i = 0; i < results->n; i++) results->own[i].release(&results->own[i]);
  results->own[0] = joined;
  results->n = 1;
  return true;
}

static bool daft_take(void *to, struct ArrowArray *values, int64_t first, char **why) {
  daft_results *results = to;
  (void)first;
  if (results->n == 64 && !daft_join(results, why)) return false;
  results->own[results->n] = *values;
  results->arrays[results->n] = &results->own[results->n];
  results->n++;
  return true;
}

static int daft_call(const void *context, const struct ArrowArray *arguments, const struct ArrowSchema *types, size_t n,
                     struct ArrowArray *result, struct ArrowSchema *type, char **why) {
  uint32_t number = (uint32_t)(uintptr_t)context;
  session *s = shared_session(number);
  struct ArrowArray *given = (struct ArrowArray *)arguments, batch; /* they are the function's from now on */
  struct ArrowSchema *given_types = (struct ArrowSchema *)types;
  daft_results results = {.type = daft_described(context)->returns};
  int64_t rows = n ? 1 : 0;
  uint64_t constants = 0;
  *why = NULL;
  for (size_t i = 0; i < n; i++)
    if (given[i].length != 1) rows = given[i].length;
  bool has_batch = s != NULL && make_batch(&batch, (int64_t)n, rows);
  if (!has_batch) *why = out_of_memory;
  for (size_t i = 0; i < n && *why == NULL; i++) {
    const struct ArrowSchema *wanted = s->function->arguments->children[i];
    struct ArrowArray *chunk = &given[i];
    if (chunk->length == rows && same_type(&types[i], wanted)) {
      *batch.children[i] = *chunk;
      chunk->release = NULL;
    } else if (chunk->length == rows && shape_of(wanted).kind == NESTED && is_convertible(&types[i], wanted)) {
      if (!converted(batch.children[i], wanted, chunk, &types[i])) *why = out_of_memory;
    } else if (shape_of(wanted).kind == NESTED || !is_castable(&types[i], wanted)) {
      *why = text_of("%s: %s is %s, not %s", s->function->name, wanted->name, name_of(wanted), name_of(&types[i]));
    } else if (chunk->length == 1 && takes_constant(s->function, i)) {
      if (!gather(batch.children[i], shape_of(wanted), &chunk, 1, shape_of(&types[i]), 1)) *why = out_of_memory;
      else constants |= UINT64_C(1) << i;
    } else if (!gather(batch.children[i], shape_of(wanted), &chunk, 1, shape_of(&types[i]), rows)) {
      *why = out_of_memory;
    }
  }
  if (*why == NULL) call_with(s, &batch, constants, daft_take, &results, why);
  else if (has_batch) batch.release(&batch);
  if (*why == NULL && results.n == 0 && !make_own(&results.own[results.n++], shape_of(results.type), 0, 0))
    *why = out_of_memory;
  if (*why == NULL && results.n > 1) daft_join(&results, why);
  if (*why == NULL && !copy_schema(type, results.type, daft_name(context))) *why = out_of_memory;
  for (size_t i = 0; i < n; i++) {
    if (given[i].release) given[i].release(&given[i]);
    if (given_types[i].release) given_types[i].release(&given_types[i]);
  }
  if (*why == NULL) return *result = results.own[0], 0;
  for (size_t i = 0; i < results.n; i++)
    if (results.own[i].release) results.own[i].release(&results.own[i]);
  return 1;
}

static void daft_end(void *context) { (void)context; }

static int daft_init(daft_session *session) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  for (uint32_t i = 0; i < plugin->n_functions; i++) {
    daft_function function = {(void *)(uintptr_t)i, daft_name, daft_returns, daft_call, daft_end};
    int failed = is_callable(plugin->functions[i]) ? session->define_function(session->context, function) : 0;
    if (failed) return failed;
  }
  return 0;
}

daft_module arroyo_udf_daft_module(void) {
  return (daft_module){1, this_plugin()->name, daft_init, free_text};
}

#endif
