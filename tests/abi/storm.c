/* A host that calls one async function from several threads at once, from start to release, again and again.
 *
 *     storm PLUGIN CYCLES
 *
 * The first async function of the plugin takes an int64 and returns it plus one. In each cycle
 *
 *     - a sender sends batches of different lengths and waits for room,
 *     - a drainer drains and waits for results,
 *     - a watcher arms and disarms, and checks that its function is called only while armed, and at most once (R14),
 *     - an idler waits, asks for statistics, and cancels rows that do not exist,
 *     - two threads stop it at the same time and must get the same status (R13); one releases it while another waits.
 *
 * Each accepted row comes out once, with its value (R1); each batch is released once, in a thread of the host (R19). The
 * last line is "N cycles are right". */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

#define ROWS 3000
#define SECOND 1000000000ull

static const arroyo_udf_table *table;
static uint32_t number;
static arroyo_udf_handle handle;
static uint8_t seen[ROWS];
static atomic_int made, released, over;
static _Thread_local int is_host;

static void fail(const char *what, arroyo_udf_status status, const arroyo_udf_error *error) {
  fprintf(stderr, "%s returned %d: %s\n", what, status, error->text ? error->text : "no text");
  abort();
}

/* ---- Batches: one allocation each, freed by release ------------------------------------------------------------- */

struct batch {
  struct ArrowArray column, *columns[1];
  const void *column_buffers[2], *buffers[1];
  int64_t values[];
};

static void no_release(struct ArrowArray *array) { array->release = NULL; }

static void release_batch(struct ArrowArray *array) {
  assert(is_host);
  atomic_fetch_add(&released, 1);
  array->release = NULL;
  free(array->private_data);
}

static struct ArrowArray make_batch(int64_t first, int64_t rows) {
  struct batch *batch = malloc(sizeof *batch + (size_t)rows * sizeof(int64_t));
  for (int64_t i = 0; i < rows; i++) batch->values[i] = first + i;
  batch->column_buffers[0] = NULL;
  batch->column_buffers[1] = batch->values;
  batch->buffers[0] = NULL;
  batch->column =
      (struct ArrowArray){.length = rows, .n_buffers = 2, .buffers = batch->column_buffers, .release = no_release};
  batch->columns[0] = &batch->column;
  atomic_fetch_add(&made, 1);
  return (struct ArrowArray){.length = rows,
                             .n_buffers = 1,
                             .buffers = batch->buffers,
                             .n_children = 1,
                             .children = batch->columns,
                             .release = release_batch,
                             .private_data = batch};
}

/* ---- The threads ------------------------------------------------------------------------------------------------ */

static void *send_rows(void *unused) {
  (void)unused;
  is_host = 1;
  for (int64_t id = 0, rows; id < ROWS; id += rows) {
    rows = 1 + id % 97;
    if (rows > ROWS - id) rows = ROWS - id;
    struct ArrowArray batch = make_batch(id, rows);
    for (;;) {
      arroyo_udf_error error = {.size = sizeof error};
      arroyo_udf_status status = table->send(handle, (uint64_t)id, &batch, NULL, &error);
      if (status == ARROYO_UDF_OK) break;
      if (status != ARROYO_UDF_WOULD_BLOCK) fail("send", status, &error);
      status = table->wait(handle, ARROYO_UDF_ROOM, 10 * SECOND, &error);
      if (status != ARROYO_UDF_OK) fail("wait for room", status, &error);
    }
  }
  return NULL;
}

/* Drains once. Returns the number of rows, or -1 at the end. */
static int64_t drain(uint64_t most) {
  arroyo_udf_error error = {.size = sizeof error};
  struct ArrowArray results;
  const struct ArrowSchema *schema;
  const arroyo_udf_status status = table->drain_results(handle, most, &results, &schema, &error);
  if (status == ARROYO_UDF_END) return -1;
  if (status == ARROYO_UDF_WOULD_BLOCK) return 0;
  if (status != ARROYO_UDF_OK) fail("drain_results", status, &error);
  const uint64_t *ids = results.children[0]->buffers[1];
  const int64_t *values = results.children[1]->buffers[1];
  const uint8_t *outcomes = results.children[2]->buffers[1];
  for (int64_t i = 0; i < results.length; i++) {
    assert(ids[i] < ROWS && !seen[ids[i]]);
    assert(outcomes[i] == ARROYO_UDF_VALUE && values[i] == (int64_t)ids[i] + 1);
    seen[ids[i]] = 1;
  }
  const int64_t rows = results.length;
  results.release(&results);
  return rows;
}

static void *drain_rows(void *unused) {
  (void)unused;
  is_host = 1;
  for (int64_t rows = 0, more; rows < ROWS; rows += more) {
    arroyo_udf_error error = {.size = sizeof error};
    const arroyo_udf_status status = table->wait(handle, ARROYO_UDF_RESULTS, 10 * SECOND, &error);
    if (status != ARROYO_UDF_OK) fail("wait for results", status, &error);
    more = drain((uint64_t)rows % 50);
    assert(more >= 0);
  }
  return NULL;
}

struct watch {
  atomic_int armed, calls;
};

static void woken(void *data) {
  struct watch *watch = data;
  assert(atomic_load(&watch->armed));
  atomic_fetch_add(&watch->calls, 1);
}

static void *watch(void *unused) {
  (void)unused;
  is_host = 1;
  struct watch watched = {0};
  for (unsigned turn = 0; !atomic_load(&over); turn++) {
    arroyo_udf_error error = {.size = sizeof error};
    const int before = atomic_load(&watched.calls);
    atomic_store(&watched.armed, 1);
    const arroyo_udf_status status = table->arm(handle, 1 + turn % 3, woken, &watched, &error);
    if (status != ARROYO_UDF_OK && status != ARROYO_UDF_READY) fail("arm", status, &error);
    if (turn % 2) sched_yield();
    if (table->disarm(handle, &error)) fail("disarm", 0, &error);
    atomic_store(&watched.armed, 0);
    assert(atomic_load(&watched.calls) - before <= (status == ARROYO_UDF_OK));
  }
  return NULL;
}

static void *idle(void *unused) {
  (void)unused;
  is_host = 1;
  while (!atomic_load(&over)) {
    arroyo_udf_error error = {.size = sizeof error};
    arroyo_udf_statistics statistics = {.size = sizeof statistics};
    if (table->statistics(handle, &statistics, &error)) fail("statistics", 0, &error);
    assert(statistics.drained <= statistics.accepted && statistics.accepted <= ROWS);
    if (table->cancel(handle, ROWS, 1000, &error)) fail("cancel", 0, &error);
    const arroyo_udf_status status = table->wait(handle, ARROYO_UDF_RESULTS, 1000, &error);
    if (status > ARROYO_UDF_WOULD_BLOCK) fail("wait", status, &error);
  }
  return NULL;
}

static void *stop(void *unused) {
  (void)unused;
  is_host = 1;
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_status status = table->stop_runtime(handle, ARROYO_UDF_DRAIN, 10 * SECOND, &error);
  if (status != ARROYO_UDF_OK) fail("stop_runtime", status, &error);
  return NULL;
}

static void *wait_for_the_end(void *unused) {
  (void)unused;
  is_host = 1;
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_status status = table->wait(handle, ARROYO_UDF_RESULTS, 10 * SECOND, &error);
  /* Refused if the release came first. */
  if (status != ARROYO_UDF_OK && status != ARROYO_UDF_INVALID_STATE) fail("last wait", status, &error);
  if (error.release) error.release(&error);
  return NULL;
}

static void run_threads(void *(*bodies[])(void *), int count, int joined, pthread_t *threads) {
  for (int i = 0; i < count; i++) {
    if (pthread_create(&threads[i], NULL, bodies[i], NULL)) abort();
  }
  for (int i = 0; i < joined; i++) pthread_join(threads[i], NULL);
}

static void cycle(int turn) {
  memset(seen, 0, sizeof seen);
  atomic_store(&over, 0);
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_options options = {.size = sizeof options,
                                .order = turn % 2 ? ARROYO_UDF_ORDERED : ARROYO_UDF_UNORDERED,
                                .allowed_in_flight = 1 + (uint32_t)turn % 64,
                                .max_rows = 100 + (uint64_t)turn % 500};
  arroyo_udf_status status = table->start(number, &options, &handle, &error);
  if (status != ARROYO_UDF_OK) fail("start", status, &error);

  pthread_t threads[4], stoppers[3];
  run_threads((void *(*[])(void *)){send_rows, drain_rows, watch, idle}, 4, 2, threads);
  run_threads((void *(*[])(void *)){stop, stop, wait_for_the_end}, 3, 2, stoppers);
  atomic_store(&over, 1);
  pthread_join(threads[2], NULL);
  pthread_join(threads[3], NULL);
  assert(drain(0) == -1);
  status = table->release(handle, &error);
  if (status != ARROYO_UDF_OK) fail("release", status, &error);
  pthread_join(stoppers[2], NULL);
  for (int i = 0; i < ROWS; i++) assert(seen[i]);
  /* The next call releases what the executor dropped last. */
  status = table->release(handle, &error);
  assert(status == ARROYO_UDF_INVALID_STATE);
  if (error.release) error.release(&error);
  assert(atomic_load(&made) == atomic_load(&released));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  is_host = 1;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  table = library ? dlsym(library, "arroyo_udf_plugin") : NULL;
  if (!table) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const arroyo_udf_descriptor *described = table->describe();
  while (number < described->n_functions && described->functions[number]->kind != ARROYO_UDF_ASYNC) number++;
  if (number == described->n_functions) return 1;
  const int cycles = atoi(argv[2]);
  for (int turn = 0; turn < cycles; turn++) cycle(turn);
  printf("%d cycles are right\n", cycles);
  return 0;
}
