/* A host that asks for more than there is memory for: the call fails with OUT_OF_MEMORY, and its inputs and rows stay.
 *
 *     huge PLUGIN
 *
 * The plugin has the sync function `same` and the async function `long`: both take an int64; `long` returns that many
 * letters, a million. The last line is "works". */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arroyo_udf.h"

#define ROWS 64
#define MILLION 1000000
#define PATIENCE 60000000000ull

static const arroyo_udf_table *table;
static arroyo_udf_error error = {.size = sizeof error};

static void expect(const char *what, arroyo_udf_status expected, arroyo_udf_status status) {
  if (status != expected) {
    fprintf(stderr, "%s returned %d: %s\n", what, status, error.text ? error.text : "no text");
    exit(1);
  }
  if (status >= ARROYO_UDF_INVALID_ARGUMENT) {
    printf("%s: %s\n", what, error.text);
    error.release(&error);
    error = (arroyo_udf_error){.size = sizeof error};
  }
}

static uint32_t number(const char *name) {
  const arroyo_udf_descriptor *const descriptor = table->describe();
  for (uint32_t i = 0; i < descriptor->n_functions; i++)
    if (strcmp(descriptor->functions[i]->name, name) == 0) return i;
  abort();
}

static int64_t values[ROWS];
static const void *column_buffers[2] = {NULL, values}, *buffers[1];
static struct ArrowArray column, *columns[1] = {&column};

static void no_release(struct ArrowArray *array) { array->release = NULL; }

static struct ArrowArray batch(int64_t length) {
  column = (struct ArrowArray){.length = length, .n_buffers = 2, .buffers = column_buffers, .release = no_release};
  return (struct ArrowArray){
      .length = length, .n_buffers = 1, .buffers = buffers, .n_children = 1, .children = columns, .release = no_release};
}

static void run(int64_t length, arroyo_udf_status expected) {
  struct ArrowArray arguments = batch(length), results = {0};
  const struct ArrowSchema *schema = NULL;
  expect("run", expected, table->run(number("same"), &arguments, NULL, &results, &schema, &error));
  if (expected == ARROYO_UDF_OK) {
    results.release(&results);
  } else {
    assert(arguments.release == no_release); /* still the host's, as are the places for results */
    assert(results.release == NULL && schema == NULL);
  }
}

static int64_t drain(arroyo_udf_handle handle, uint64_t rows, arroyo_udf_status expected) {
  struct ArrowArray results = {0};
  const struct ArrowSchema *schema = NULL;
  expect("drain_results", expected, table->drain_results(handle, rows, &results, &schema, &error));
  if (expected != ARROYO_UDF_OK) return 0;
  const int64_t length = results.length, first = (int64_t)((const uint64_t *)results.children[0]->buffers[1])[0];
  assert(((const int32_t *)results.children[1]->buffers[1])[length] == length * MILLION);
  results.release(&results);
  return first * 1000 + length;
}

int main(int count, char **words) {
  if (count != 2) return 2;
  void *const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  table = dlsym(library, "arroyo_udf_plugin");
  run(INT64_C(1) << 58, ARROYO_UDF_OUT_OF_MEMORY);
  run(ROWS, ARROYO_UDF_OK);

  arroyo_udf_handle handle;
  const arroyo_udf_options options = {.size = sizeof options, .order = ARROYO_UDF_ORDERED};
  expect("start", ARROYO_UDF_OK, table->start(number("long"), &options, &handle, &error));
  for (int i = 0; i < ROWS; i++) values[i] = MILLION;
  struct ArrowArray arguments = batch(ROWS);
  expect("send", ARROYO_UDF_OK, table->send(handle, 0, &arguments, NULL, &error));
  arroyo_udf_statistics statistics = {.size = sizeof statistics};
  do {
    expect("wait", ARROYO_UDF_OK, table->wait(handle, ARROYO_UDF_RESULTS, PATIENCE, &error));
    expect("statistics", ARROYO_UDF_OK, table->statistics(handle, &statistics, &error));
  } while (statistics.ready < ROWS);

  long pages;
  struct rlimit usual;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1 || fclose(file) != 0) abort();
  getrlimit(RLIMIT_AS, &usual);
  const struct rlimit little = {((rlim_t)pages << 12) + (16 << 20), usual.rlim_max};
  if (setrlimit(RLIMIT_AS, &little) != 0) abort();
  drain(handle, 0, ARROYO_UDF_OUT_OF_MEMORY);
  assert(drain(handle, 4, ARROYO_UDF_OK) == 4); /* fewer rows at once; the first four */
  if (setrlimit(RLIMIT_AS, &usual) != 0) abort();
  assert(drain(handle, 0, ARROYO_UDF_OK) == 4000 + ROWS - 4);
  expect("stop_runtime", ARROYO_UDF_OK, table->stop_runtime(handle, ARROYO_UDF_DRAIN, PATIENCE, &error));
  drain(handle, 0, ARROYO_UDF_END);
  expect("release", ARROYO_UDF_OK, table->release(handle, &error));
  puts("works");
  return 0;
}
