/* A host without memory for more threads, which then has it again.
 *
 *     starved PLUGIN MIB
 *
 * The plugin's only async function takes an int64 and returns it plus one; its sync function `seen`, if there is one, is
 * called first. Then the process may use MIB more of address space, and the function is started. A start that fails has a
 * status and a text; after one that succeeds, `send` takes a batch or leaves it with the caller. When memory is back, all
 * rows that were accepted come out, and another start works as usual. The last line is "works". */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arroyo_udf.h"

#define ROWS 10
#define PATIENCE 60000000000ull

static const arroyo_udf_table *table;
static arroyo_udf_error error = {.size = sizeof error};

static void fail(const char *what, arroyo_udf_status status) {
  fprintf(stderr, "%s returned %d: %s\n", what, status, error.text ? error.text : "no text");
  exit(1);
}

/* ---- One batch of ten rows --------------------------------------------------------------------------------------- */

static int64_t values[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const void *column_buffers[2] = {NULL, values}, *buffers[1];
static struct ArrowArray column, *columns[1] = {&column};

static void no_release(struct ArrowArray *array) { array->release = NULL; }

static struct ArrowArray batch(void) {
  column = (struct ArrowArray){.length = ROWS, .n_buffers = 2, .buffers = column_buffers, .release = no_release};
  return (struct ArrowArray){
      .length = ROWS, .n_buffers = 1, .buffers = buffers, .n_children = 1, .children = columns, .release = no_release};
}

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

static struct rlimit usual;

static void starve(rlim_t mib) {
  long pages;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1 || fclose(file) != 0) abort();
  getrlimit(RLIMIT_AS, &usual);
  const struct rlimit little = {((rlim_t)pages << 12) + (mib << 20), usual.rlim_max};
  if (setrlimit(RLIMIT_AS, &little) != 0) abort();
}

static void feed(void) {
  if (setrlimit(RLIMIT_AS, &usual) != 0) abort();
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void send(arroyo_udf_handle handle) {
  struct ArrowArray arguments = batch();
  const arroyo_udf_status status = table->send(handle, 0, &arguments, NULL, &error);
  if (status != ARROYO_UDF_OK) fail("send", status);
  assert(arguments.release == NULL); /* the batch has moved */
}

static void end(arroyo_udf_handle handle) {
  for (int64_t rows = 0; rows < ROWS;) {
    struct ArrowArray results;
    const struct ArrowSchema *schema;
    arroyo_udf_status status = table->drain_results(handle, 0, &results, &schema, &error);
    if (status == ARROYO_UDF_WOULD_BLOCK) {
      status = table->wait(handle, ARROYO_UDF_RESULTS, PATIENCE, &error);
      if (status != ARROYO_UDF_OK) fail("wait", status);
      continue;
    }
    if (status != ARROYO_UDF_OK) fail("drain_results", status);
    const int64_t *const value = results.children[1]->buffers[1];
    const uint8_t *const outcome = results.children[2]->buffers[1];
    for (int64_t i = 0; i < results.length; i++) assert(outcome[i] == ARROYO_UDF_VALUE && value[i] == rows + i + 1);
    rows += results.length;
    results.release(&results);
  }
  arroyo_udf_status status = table->stop_runtime(handle, ARROYO_UDF_DRAIN, PATIENCE, &error);
  if (status != ARROYO_UDF_OK) fail("stop_runtime", status);
  status = table->release(handle, &error);
  if (status != ARROYO_UDF_OK) fail("release", status);
}

int main(int count, char **words) {
  if (count != 3) return 2;
  void *const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  table = dlsym(library, "arroyo_udf_plugin");
  const arroyo_udf_descriptor *const descriptor = table->describe();
  uint32_t number = 0;
  for (uint32_t i = 0; i < descriptor->n_functions; i++) {
    if (descriptor->functions[i]->kind == ARROYO_UDF_ASYNC) {
      number = i;
      continue;
    }
    /* An empty batch, so that an interpreter runs. */
    struct ArrowArray arguments = batch(), results;
    const struct ArrowSchema *schema;
    column.length = arguments.length = 0;
    const arroyo_udf_status status = table->run(i, &arguments, &results, &schema, &error);
    if (status != ARROYO_UDF_OK) fail("run", status);
    results.release(&results);
  }
  arroyo_udf_handle handle;
  starve((rlim_t)atol(words[2]));
  const arroyo_udf_status status = table->start(number, NULL, &handle, &error);
  if (status == ARROYO_UDF_OK) {
    send(handle);
    feed();
    end(handle);
  } else {
    feed();
    if (status < ARROYO_UDF_INVALID_ARGUMENT || error.text == NULL) fail("start", status);
    printf("start returned %d: %s\n", status, error.text);
    error.release(&error);
    error = (arroyo_udf_error){.size = sizeof error};
  }
  const arroyo_udf_status again = table->start(number, NULL, &handle, &error);
  if (again != ARROYO_UDF_OK) fail("the second start", again);
  send(handle);
  end(handle);
  puts("works");
  return 0;
}
