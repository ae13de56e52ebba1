/* A host that lacks something, calls each function of a plugin, then has it again.
 *
 *     starved PLUGIN LACK AMOUNT BEFORE
 *
 * Each function of the plugin takes an int64 and returns it plus one. BEFORE it lacks something, the host has done
 * "nothing", has "served" a batch with each function, or has "started" the async ones. It may lack
 *
 *     memory MIB         of address space are left
 *     threads N          may still be made
 *     descriptors N      may still be opened
 *     streams 0          standard input, output and error are closed
 *     stack KIB          for the thread that calls
 *     files 0            nothing can be written to a file
 *
 * While it lacks that, each call works, or answers a status with a text, says that the host may retry, and leaves the batch
 * with the host; each row has its value, or an error with a text. Afterwards each row that was accepted comes out, and
 * each function works as usual. Prints the failures, and at last "works". */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arroyo_udf.h"

enum { ROWS = 10, MOST_FUNCTIONS = 8 };
#define PATIENCE 60000000000ull
#define A_MOMENT 20000000ull

static const arroyo_udf_table *table;
static arroyo_udf_error error = {.size = sizeof error};
static FILE *report; /* standard output, under a number that stays open */
static bool starving;     /* calls may fail */
static bool ran_starving; /* rows may have failed */

static void forget_error(void) {
  if (error.release) error.release(&error);
  error = (arroyo_udf_error){.size = sizeof error};
}

/* Whether a call has worked. It must, unless the host is starving. */
static bool works(const char *slot, arroyo_udf_status status) {
  if (status == ARROYO_UDF_OK) return true;
  const bool fine = starving && status >= ARROYO_UDF_INVALID_ARGUMENT && error.text && error.retryable == ARROYO_UDF_YES;
  fprintf(report, "%s returned %d: %s%s\n", slot, status, error.text ? error.text : "no text", fine ? "" : " (WRONG)");
  if (!fine) exit(1);
  forget_error();
  return false;
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

static int64_t values[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const void *column_buffers[2] = {NULL, values}, *buffers[1];
static atomic_int alive;

struct batch {
  struct ArrowArray outer, column, *columns[1];
};

static void release_nothing(struct ArrowArray *array) { array->release = NULL; }
static void release_batch(struct ArrowArray *array) {
  alive--;
  array->release = NULL;
}

/* Makes a batch in memory that the caller keeps until it is released. */
static void make(struct batch *batch) {
  alive++;
  batch->columns[0] = &batch->column;
  batch->column = (struct ArrowArray){
      .length = ROWS, .n_buffers = 2, .buffers = column_buffers, .release = release_nothing};
  batch->outer = (struct ArrowArray){.length = ROWS, .n_buffers = 1, .buffers = buffers, .n_children = 1,
                                     .children = batch->columns, .release = release_batch};
}

static void check(const struct ArrowArray *results, const struct ArrowSchema *schema, int64_t first) {
  const struct ArrowArray *value = NULL, *outcome = NULL, *text = NULL;
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (!strcmp(schema->children[i]->name, "value")) value = results->children[i];
    if (!strcmp(schema->children[i]->name, "outcome")) outcome = results->children[i];
    if (!strcmp(schema->children[i]->name, "error")) text = results->children[i];
  }
  for (int64_t row = 0; row < results->length; row++) {
    if (!outcome || ((const uint8_t *)outcome->buffers[1])[row] == ARROYO_UDF_VALUE) {
      assert(((const int64_t *)value->buffers[1])[row] == first + row + 1);
      continue;
    }
    const int32_t *offsets = text->buffers[1];
    fprintf(report, "row %d: %.*s%s\n", (int)(first + row), offsets[row + 1] - offsets[row],
            (const char *)text->buffers[2] + offsets[row], ran_starving ? "" : " (WRONG)");
    if (!ran_starving) exit(1);
  }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static struct started {
  arroyo_udf_handle handle; /* 0: none */
  int64_t missing;          /* rows */
  struct batch batch;
} all_started[MOST_FUNCTIONS];

static void run(uint32_t number) {
  struct batch batch;
  struct ArrowArray results;
  const struct ArrowSchema *schema;
  make(&batch);
  if (works("run", table->run(number, &batch.outer, NULL, &results, &schema, &error))) {
    check(&results, schema, 0);
    results.release(&results);
  } else {
    assert(batch.outer.release == release_batch && batch.column.release == release_nothing);
    batch.outer.release(&batch.outer);
  }
}

static bool start(uint32_t number) {
  /* With a deadline, the time matters to a row as soon as it is sent. */
  const arroyo_udf_options options = {.size = sizeof options, .deadline_ns = PATIENCE};
  arroyo_udf_handle handle = 0;
  const bool started = works("start", table->start(number, &options, &handle, &error));
  all_started[number].handle = started ? handle : 0;
  return started;
}

static void start_and_send(uint32_t number) {
  struct started *const started = &all_started[number];
  if (!started->handle && !start(number)) return;
  make(&started->batch);
  if (works("send", table->send(started->handle, 0, &started->batch.outer, NULL, &error))) {
    started->missing = ROWS;
  } else {
    assert(started->batch.outer.release == release_batch && started->batch.column.release == release_nothing);
    started->batch.outer.release(&started->batch.outer);
  }
}

/* Drains all rows; while the host starves, those that are there soon. */
static void drain(struct started *started) {
  while (started->missing > 0) {
    struct ArrowArray results;
    const struct ArrowSchema *schema;
    arroyo_udf_status status = table->drain_results(started->handle, 0, &results, &schema, &error);
    if (status == ARROYO_UDF_WOULD_BLOCK) {
      status = table->wait(started->handle, ARROYO_UDF_RESULTS, starving ? A_MOMENT : PATIENCE, &error);
      if (starving && status == ARROYO_UDF_WOULD_BLOCK) return;
      if (!works("wait", status)) return;
    } else {
      if (!works("drain_results", status)) return;
      check(&results, schema, ROWS - started->missing);
      started->missing -= results.length;
      results.release(&results);
    }
  }
}

static void end(struct started *started) {
  works("stop_runtime", table->stop_runtime(started->handle, ARROYO_UDF_DRAIN, PATIENCE, &error));
  works("release", table->release(started->handle, &error));
  started->handle = 0;
}

static void *begin_each(void *unused) {
  const arroyo_udf_descriptor *const descriptor = table->describe();
  for (uint32_t i = 0; i < descriptor->n_functions; i++) {
    if (descriptor->functions[i]->kind == ARROYO_UDF_SYNC)
      run(i);
    else
      start_and_send(i);
    drain(&all_started[i]);
  }
  return unused;
}

static void end_each(void) {
  for (int i = 0; i < MOST_FUNCTIONS; i++) {
    if (!all_started[i].handle) continue;
    drain(&all_started[i]);
    end(&all_started[i]);
  }
  assert(alive == 0);
}

/* ---- What the host lacks ----------------------------------------------------------------------------------------- */

static int threads_left = -1; /* -1: no limit */

/* In place of the C library's, because the executable comes first. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) threads_left--;
  return real(thread, attributes, body, data);
}

static struct rlimit usual;
static int limited = -1;

static void limit(int resource, rlim_t value) {
  limited = resource;
  getrlimit(resource, &usual);
  const struct rlimit little = {value, usual.rlim_max};
  if (setrlimit(resource, &little)) abort();
}

static long pages(void) {
  long number;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &number) != 1 || fclose(file)) abort();
  return number;
}

/* One more than the highest descriptor, so that `left` more fit below the limit. */
static rlim_t limit_of_descriptors(long left) {
  rlim_t at = 0;
  for (int descriptor = 0; descriptor < 1024; descriptor++)
    if (fcntl(descriptor, F_GETFD) >= 0) at = descriptor + 1;
    else if (left > 0) left--, at = descriptor + 1;
    else break;
  return at;
}

static int streams[3];

static void starve(const char *lack, long amount) {
  if (!strcmp(lack, "memory")) limit(RLIMIT_AS, (rlim_t)pages() * 4096 + ((rlim_t)amount << 20));
  if (!strcmp(lack, "threads")) threads_left = amount;
  if (!strcmp(lack, "descriptors")) limit(RLIMIT_NOFILE, limit_of_descriptors(amount));
  if (!strcmp(lack, "files")) signal(SIGXFSZ, SIG_IGN), limit(RLIMIT_FSIZE, 0);
  for (int i = 0; i < 3 && !strcmp(lack, "streams"); i++) {
    streams[i] = fcntl(i, F_DUPFD, 10);
    close(i);
  }
}

static void feed(const char *lack) {
  threads_left = -1;
  if (limited >= 0 && setrlimit(limited, &usual)) abort();
  for (int i = 0; i < 3 && !strcmp(lack, "streams"); i++)
    if (fcntl(i, F_GETFD) < 0) dup2(streams[i], i); /* a plugin may use the number by now */
}

int main(int count, char **words) {
  if (count != 5) return 2;
  report = fdopen(fcntl(1, F_DUPFD, 9), "w");
  setvbuf(report, NULL, _IOLBF, 0);
  void *const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return fprintf(report, "%s\n", dlerror()), 1;
  table = dlsym(library, "arroyo_udf_plugin");
  if (!strcmp(words[4], "served")) begin_each(NULL), end_each();
  for (uint32_t i = 0; i < table->describe()->n_functions && !strcmp(words[4], "started"); i++)
    if (table->describe()->functions[i]->kind == ARROYO_UDF_ASYNC) start(i);

  starving = ran_starving = true;
  const long amount = atol(words[3]);
  if (strcmp(words[2], "stack")) {
    starve(words[2], amount);
    begin_each(NULL);
    feed(words[2]);
  } else {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)amount << 10)) abort();
    pthread_t thread;
    if (pthread_create(&thread, &attributes, begin_each, NULL)) abort();
    pthread_join(thread, NULL);
  }
  starving = false;
  end_each();
  ran_starving = false;
  begin_each(NULL);
  end_each();
  fputs("works\n", report);
  return 0;
}
