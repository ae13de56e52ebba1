/* calls.h: one function of this library, called for a batch.
 *
 *   session *s = open_session(number)     for each registration in an engine; close_session stops its runtime
 *   call(s, &batch, take, to, &why)       takes the batch; `take` gets the results, in the order of the rows
 *
 * GUARANTEES  Any number of threads may call. An async function has one runtime for each session: it starts with the first
 *             call and runs one batch at a time. A child of a fork does not use its parent's. */
#ifndef ARROYO_UDF_ENGINES_CALLS_H
#define ARROYO_UDF_ENGINES_CALLS_H

#include <pthread.h>
#include <unistd.h>
#include "columns.h"
#include "nested.h"
#include "engines.h"

#ifdef ARROYO_UDF_ON_ERROR_NULL
#define FAILS 0
#else
#define FAILS 1
#endif

#define ATTEMPTS_IF_UNORDERED 3 /* the default of a function whose author did not ask for an order */
#define STOPS_WITHIN UINT64_C(1000000000)

typedef struct {
  const arroyo_udf_function *function;
  uint32_t number;
  pthread_mutex_t lock; /* of what follows */
  pid_t process;        /* that has started it; 0: none */
  arroyo_udf_handle handle;
  uint64_t next_id;
} session;

/* Gets results: an array of values, with `first` as the number of its first row. It takes the array if it answers true;
 * else it sets *why. */
typedef bool (*taker)(void *to, struct ArrowArray *values, int64_t first, char **why);

/* ---- The functions of this library ------------------------------------------------------------------------------ */

static const arroyo_udf_descriptor *this_plugin(void) { return arroyo_udf_plugin.describe(); }

static bool is_callable(const arroyo_udf_function *function) {
  return function->kind == ARROYO_UDF_SYNC || function->kind == ARROYO_UDF_ASYNC;
}

/* Of a function of this library. */
static uint32_t number_of(const char *name) {
  const arroyo_udf_descriptor *plugin = this_plugin();
  uint32_t number = 0;
  while (number + 1 < plugin->n_functions && strcmp(plugin->functions[number]->name, name)) number++;
  return number;
}

static session *open_session(uint32_t number) {
  session *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->function = this_plugin()->functions[number];
  made->number = number;
  pthread_mutex_init(&made->lock, NULL);
  return made;
}

static void close_session(void *data) {
  session *s = data;
  if (s->process == getpid()) arroyo_udf_plugin.release(s->handle, NULL);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

/* The one of engines that tell nothing of registrations; it stays. */
static session *shared_session(uint32_t number) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static session **shared;
  pthread_mutex_lock(&lock);
  if (shared == NULL) shared = calloc(this_plugin()->n_functions, sizeof *shared);
  session *found = shared == NULL ? NULL : shared[number];
  if (found == NULL && shared != NULL) found = shared[number] = open_session(number);
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

static char *failed(const arroyo_udf_function *function, arroyo_udf_status status, arroyo_udf_error *error) {
  char *text = error->text ? text_of("%s", error->text)
                           : text_of("%s.%s failed with status %d", this_plugin()->name, function->name, (int)status);
  if (error->release) error->release(error);
  return text;
}

/* ---- Batches ---------------------------------------------------------------------------------------------------- */

static void release_batch(struct ArrowArray *batch) {
  for (int64_t i = 0; i < batch->n_children; i++) {
    if (batch->children[i]->release) batch->children[i]->release(batch->children[i]);
    free(batch->children[i]);
  }
  free(batch->children);
  free(batch->private_data);
  batch->release = NULL;
}

/* A batch with room for the columns, which are released already. false: no memory. */
static bool make_batch(struct ArrowArray *batch, int64_t columns, int64_t rows) {
  *batch = (struct ArrowArray){.length = rows, .n_buffers = 1, .release = release_batch};
  batch->private_data = calloc(1, sizeof(void *));
  batch->buffers = batch->private_data;
  batch->children = calloc((size_t)columns + 1, sizeof(void *));
  if (batch->buffers == NULL || batch->children == NULL) return release_batch(batch), false;
  for (; batch->n_children < columns; batch->n_children++)
    if ((batch->children[batch->n_children] = calloc(1, sizeof(struct ArrowArray))) == NULL)
      return release_batch(batch), false;
  return true;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static int field_of(const struct ArrowSchema *schema, const char *name) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (!strcmp(schema->children[i]->name, name)) return (int)i;
  return -1;
}

typedef struct {
  struct ArrowArray whole; /* owns the memory of its values */
} kept_results;

static void release_values(struct ArrowArray *values) {
  kept_results *kept = values->private_data;
  kept->whole.release(&kept->whole);
  free(kept);
  values->release = NULL;
}

/* The text of the first row that failed, if that is to be told; NULL: none. */
static char *failure_in(const struct ArrowArray *results, const struct ArrowSchema *schema) {
  int outcome = field_of(schema, "outcome"), error = field_of(schema, "error");
  if (!FAILS || outcome < 0) return NULL;
  const struct ArrowArray *outcomes = results->children[outcome];
  const uint8_t *ended = (const uint8_t *)outcomes->buffers[1] + outcomes->offset + results->offset;
  for (int64_t i = 0; i < results->length; i++) {
    if (ended[i] == ARROYO_UDF_VALUE) continue;
    int64_t length = 0;
    bool has_text = error >= 0 && is_valid(results->children[error], results->offset + i);
    const char *text = has_text ? text_at(results->children[error], shape_of(schema->children[error]),
                                          results->offset + i, &length) : "a row failed";
    return has_text ? text_of("%.*s", (int)length, text) : text_of("%s", text);
  }
  return NULL;
}

/* Hands results on. They are released here unless the taker has taken them. */
static bool hand_on(struct ArrowArray *results, const struct ArrowSchema *schema, int64_t first, taker take, void *to,
                    char **why) {
  int value = field_of(schema, "value");
  kept_results *kept = value < 0 ? NULL : malloc(sizeof *kept);
  *why = value < 0 ? text_of("the results have no values") : kept == NULL ? out_of_memory : failure_in(results, schema);
  if (*why != NULL) {
    free(kept);
    results->release(results);
    return false;
  }
  struct ArrowArray values = *results->children[value];
  values.offset += results->offset;
  values.length = results->length;
  if (results->offset || results->length != results->children[value]->length) values.null_count = -1;
  kept->whole = *results;
  values.private_data = kept;
  values.release = release_values;
  if (take(to, &values, first, why)) return true;
  values.release(&values);
  return false;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static bool start(session *s, char **why) {
  if (s->process == getpid()) return true;
  const arroyo_udf_options *chosen = s->function->options;
  arroyo_udf_options options = {.size = sizeof options, .order = ARROYO_UDF_ORDERED};
  if (chosen && chosen->order == ARROYO_UDF_UNORDERED && !chosen->max_attempts)
    options.max_attempts = ATTEMPTS_IF_UNORDERED;
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_status status = arroyo_udf_plugin.start(s->number, &options, &s->handle, &error);
  if (status != ARROYO_UDF_OK) return *why = failed(s->function, status, &error), false;
  s->process = getpid();
  s->next_id = 0;
  return true;
}

/* Takes out the rows of a batch that was sent. After a failure the others are cancelled, and taken out, too. */
static bool drain(session *s, int64_t rows, taker take, void *to, char **why) {
  bool is_whole = true;
  for (int64_t out = 0; out < rows;) {
    struct ArrowArray results;
    const struct ArrowSchema *schema;
    arroyo_udf_error error = {.size = sizeof error};
    arroyo_udf_status status = arroyo_udf_plugin.drain_results(s->handle, 0, &results, &schema, &error);
    if (status == ARROYO_UDF_WOULD_BLOCK) {
      arroyo_udf_plugin.wait(s->handle, ARROYO_UDF_RESULTS, UINT64_MAX, NULL);
      continue;
    }
    if (status != ARROYO_UDF_OK) {
      if (is_whole) *why = failed(s->function, status, &error);
      else if (error.release) error.release(&error);
      arroyo_udf_plugin.release(s->handle, NULL);
      s->process = 0;
      return false;
    }
    int64_t first = out;
    out += results.length;
    if (!is_whole) {
      results.release(&results);
    } else if (!hand_on(&results, schema, first, take, to, why)) {
      is_whole = false;
      arroyo_udf_plugin.cancel(s->handle, s->next_id, (uint64_t)rows, NULL);
    }
  }
  return is_whole;
}

static bool call_async(session *s, struct ArrowArray *batch, taker take, void *to, char **why) {
  int64_t rows = batch->length;
  pthread_mutex_lock(&s->lock);
  bool done = start(s, why);
  if (done) {
    arroyo_udf_error error = {.size = sizeof error};
    arroyo_udf_status status = arroyo_udf_plugin.send(s->handle, s->next_id, batch, NULL, &error);
    if (status == ARROYO_UDF_OK) {
      done = drain(s, rows, take, to, why);
      s->next_id += (uint64_t)rows;
    } else {
      *why = failed(s->function, status, &error);
      done = false;
      arroyo_udf_plugin.release(s->handle, NULL); /* poisoned, or stopped: the next call starts another one */
      s->process = 0;
    }
  }
  pthread_mutex_unlock(&s->lock);
  return done;
}

/* Whether an argument that is the same in all rows may come as one value. */
static bool takes_constant(const arroyo_udf_function *function, size_t argument) {
  return argument < 64 && (function->constants >> argument & 1) != 0;
}

/* Takes the batch, whatever it answers. constants: bit i: argument number i has one row. false: *why says what failed, to
 * be freed by `free_text`. */
static bool call_with(session *s, struct ArrowArray *batch, uint64_t constants, taker take, void *to, char **why) {
  const arroyo_udf_batch_context context = {.size = sizeof context, .constants = constants};
  bool done;
  *why = NULL;
  if (s->function->kind == ARROYO_UDF_ASYNC) {
    done = call_async(s, batch, take, to, why);
  } else {
    struct ArrowArray results;
    const struct ArrowSchema *schema;
    arroyo_udf_error error = {.size = sizeof error};
    arroyo_udf_status status = arroyo_udf_plugin.run(s->number, batch, constants ? &context : NULL, &results, &schema, &error);
    done = status == ARROYO_UDF_OK;
    if (done) done = hand_on(&results, schema, 0, take, to, why);
    else *why = failed(s->function, status, &error);
  }
  if (batch->release) batch->release(batch);
  return done;
}

static bool call(session *s, struct ArrowArray *batch, taker take, void *to, char **why) {
  return call_with(s, batch, 0, take, to, why);
}

#endif
