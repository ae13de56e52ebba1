/* A host that knows into which plugin it calls whenever one of its input arrays is released (R19).
 *
 *     releases PLUGIN          an async function plus: inputs of a released handle, drained or not
 *     releases PLUGIN OTHER    also the functions of keeps.py: arrays that user code keeps, and drops in OTHER's calls
 *
 * The last line is "each array was released in a call into its plugin". */
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

#define SECOND 1000000000ull

static const arroyo_udf_table *inside; /* of the call that runs */
static int alive;                      /* input arrays */

struct batch {
  const arroyo_udf_table *plugin;
  struct ArrowArray column, *columns[1];
  const void *column_buffers[2], *buffers[1];
  int64_t values[100];
};

static void no_release(struct ArrowArray *array) { array->release = NULL; }

static void release_batch(struct ArrowArray *array) {
  struct batch *batch = array->private_data;
  assert(batch->plugin == inside);
  alive--;
  array->release = NULL;
  free(batch);
}

static struct ArrowArray make_batch(const arroyo_udf_table *plugin) {
  struct batch *batch = calloc(1, sizeof *batch);
  batch->plugin = plugin;
  batch->column_buffers[1] = batch->values;
  batch->column = (struct ArrowArray){
      .length = 100, .n_buffers = 2, .buffers = batch->column_buffers, .release = no_release};
  batch->columns[0] = &batch->column;
  alive++;
  return (struct ArrowArray){.length = 100, .n_buffers = 1, .n_children = 1, .buffers = batch->buffers,
                             .children = batch->columns, .release = release_batch, .private_data = batch};
}

static arroyo_udf_error error = {.size = sizeof error};

/* CALL(plugin, slot, ...): the status of a call, during which `inside` is the plugin. */
#define CALL(plugin, slot, ...) (inside = (plugin), after((plugin)->slot(__VA_ARGS__, &error)))

static arroyo_udf_status after(arroyo_udf_status status) {
  inside = NULL;
  if (error.text) fprintf(stderr, "%s\n", error.text);
  if (error.release) error.release(&error);
  error = (arroyo_udf_error){.size = sizeof error};
  return status;
}

static uint32_t number(const arroyo_udf_table *plugin, const char *name) {
  const arroyo_udf_descriptor *descriptor = plugin->describe();
  for (uint32_t i = 0; i < descriptor->n_functions; i++)
    if (!strcmp(descriptor->functions[i]->name, name)) return i;
  fprintf(stderr, "%s has no function %s\n", descriptor->name, name);
  exit(1);
}

static void run(const arroyo_udf_table *plugin, const char *name) {
  struct ArrowArray arguments = make_batch(plugin), results;
  const struct ArrowSchema *schema;
  assert(CALL(plugin, run, number(plugin, name), &arguments, NULL, &results, &schema) == ARROYO_UDF_OK);
  results.release(&results);
}

static arroyo_udf_handle start(const arroyo_udf_table *plugin) {
  arroyo_udf_handle handle;
  assert(CALL(plugin, start, number(plugin, "plus"), NULL, &handle) == ARROYO_UDF_OK);
  return handle;
}

static void send(const arroyo_udf_table *plugin, arroyo_udf_handle handle) {
  struct ArrowArray arguments = make_batch(plugin);
  assert(CALL(plugin, send, handle, 0, &arguments, NULL) == ARROYO_UDF_OK);
}

static const arroyo_udf_table *open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const arroyo_udf_table *plugin = library ? dlsym(library, "arroyo_udf_plugin") : NULL;
  if (!plugin) puts(dlerror());
  assert(plugin);
  return plugin;
}

int main(int argc, char **argv) {
  const arroyo_udf_table *plugin = open(argv[1]);
  for (int ends = 0; ends < 2; ends++) {
    for (int i = 0; i < 20; i++) {
      arroyo_udf_handle handle = start(plugin);
      send(plugin, handle);
      if (ends) {
        while (CALL(plugin, wait, handle, ARROYO_UDF_RESULTS, SECOND) != ARROYO_UDF_OK) {}
      }
      assert(CALL(plugin, release, handle) == ARROYO_UDF_OK);
      assert(alive == 0);
    }
  }
  puts("release frees what was not drained");

  if (argc > 2) {
    const arroyo_udf_table *other = open(argv[2]);
    arroyo_udf_handle handle = start(plugin);
    send(plugin, handle);
    arroyo_udf_statistics statistics = {.size = sizeof statistics};
    do {
      assert(CALL(plugin, wait, handle, ARROYO_UDF_RESULTS, SECOND) == ARROYO_UDF_OK);
      run(other, "drop");
      struct ArrowArray results;
      const struct ArrowSchema *schema;
      arroyo_udf_status status = CALL(plugin, drain_results, handle, 0, &results, &schema);
      if (status == ARROYO_UDF_OK) results.release(&results);
      run(other, "drop");
      assert(CALL(plugin, statistics, handle, &statistics) == ARROYO_UDF_OK);
    } while (statistics.drained < 100);
    assert(CALL(plugin, release, handle) == ARROYO_UDF_OK);
    assert(alive == 0);
    puts("inputs of ended rows");

    run(plugin, "keep");
    assert(alive == 1);
    run(other, "drop"); /* frees the array that the other plugin's function keeps */
    assert(alive == 1);
    run(plugin, "drop");
    assert(alive == 0);
    puts("arrays that user code keeps");

    run(plugin, "keep_what_it_raises");
    assert(alive == 0);
    run(plugin, "keep_in_a_circle");
    run(other, "collect");
    run(plugin, "drop");
    assert(alive == 0);
    puts("arrays that exceptions keep");
  }
  puts("each array was released in a call into its plugin");
  return 0;
}
