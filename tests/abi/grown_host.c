/* A host of a later version: compiled with a header in which the table, every struct that begins with its size, and an
 * enumeration have grown (test_grown.py makes it). It passes each of its structs to a plugin of version 1, which has the
 * functions `same` (sync) and `later` (async), int64 -> int64, and prints what comes back as lines "what: ...". */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "arroyo_udf.h"

#define OURS 7 /* in our fields of later versions: a plugin must not touch it */

static const arroyo_udf_table* table;
static arroyo_udf_error error;

static void clear(void) {
  if (error.release != NULL) error.release(&error);
  error = (arroyo_udf_error){.size = sizeof error, .later = OURS};
}

static void print(const char* what, arroyo_udf_status status) {
  printf("%s: %d %s\n", what, (int)status, error.text == NULL ? "" : error.text);
  if (error.later != OURS || error.size != sizeof error) printf("%s wrote to a field that it does not know\n", what);
  clear();
}

static int released;
static void release(struct ArrowArray* array) {
  released++;
  array->release = NULL;
}

/* A batch of one row; it has no memory of its own. */
static void make(struct ArrowArray* batch) {
  static const int64_t number = 42;
  static const void* buffers[2] = {NULL, &number};
  static struct ArrowArray child;
  static struct ArrowArray* children[1] = {&child};
  child = (struct ArrowArray){.length = 1, .n_buffers = 2, .buffers = buffers, .release = release};
  *batch = (struct ArrowArray){
      .length = 1, .n_buffers = 1, .n_children = 1, .buffers = buffers, .children = children, .release = release};
}

static void print_value(const char* what, struct ArrowArray* results, const struct ArrowSchema* schema) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (strcmp(schema->children[i]->name, "value") == 0)
      printf("%s: %d\n", what, (int)((const int64_t*)results->children[i]->buffers[1])[results->children[i]->offset]);
  results->release(results);
}

static void use_descriptor(void) {
  const arroyo_udf_descriptor* plugin = table->describe();
  printf("sizes: %d %d %d\n", (int)(plugin->size < sizeof *plugin), (int)(plugin->functions[0]->size < sizeof **plugin->functions),
         (int)(table->table_size < sizeof *table));
  printf("extension: %d\n", table->extension("unknown/1") != NULL || table->extension(NULL) != NULL);
}

static void use_run(uint32_t same) {
  struct ArrowArray batch, results;
  const struct ArrowSchema* schema;
  arroyo_udf_batch_context context = {.size = sizeof context, .later = OURS};
  make(&batch);
  arroyo_udf_status status = table->run(same, &batch, &context, &results, &schema, &error);
  print("run", status);
  if (status == ARROYO_UDF_OK) print_value("run value", &results, schema);
  make(&batch);
  context.size = 8;
  print("run, small context", table->run(same, &batch, &context, &results, &schema, &error));
  printf("still ours: %d\n", batch.release != NULL);
}

static arroyo_udf_handle use_start(uint32_t later) {
  arroyo_udf_handle handle = 0, other = 0;
  arroyo_udf_options options = {.size = sizeof options};
  print("start", table->start(later, &options, &handle, &error));
  options.later = OURS;
  print("start, later option", table->start(later, &options, &other, &error));
  options.size = ARROYO_UDF_OPTIONS_SIZE_1 - 1;
  print("start, small options", table->start(later, &options, &other, &error));
  return handle;
}

static void use_send(arroyo_udf_handle handle) {
  struct ArrowArray batch, results;
  const struct ArrowSchema* schema;
  arroyo_udf_batch_context context = {.size = 8, .later = OURS};
  make(&batch);
  print("send, small context", table->send(handle, 0, &batch, &context, &error));
  printf("still ours: %d\n", batch.release != NULL);
  context.size = sizeof context;
  print("send", table->send(handle, 0, &batch, &context, &error));
  print("wait", table->wait(handle, ARROYO_UDF_RESULTS, UINT64_C(60000000000), &error));
  arroyo_udf_status status = table->drain_results(handle, 0, &results, &schema, &error);
  print("drain", status);
  if (status == ARROYO_UDF_OK) print_value("drained value", &results, schema);
}

static void use_statistics(arroyo_udf_handle handle) {
  arroyo_udf_statistics statistics = {.size = sizeof statistics, .later = OURS};
  print("statistics", table->statistics(handle, &statistics, &error));
  printf("filled in: %d %d, accepted: %d\n", (int)(statistics.size == sizeof statistics - sizeof statistics.later),
         (int)statistics.later, (int)statistics.accepted);
  statistics = (arroyo_udf_statistics){.size = ARROYO_UDF_STATISTICS_SIZE_1 - 1};
  print("small statistics", table->statistics(handle, &statistics, &error));
  printf("untouched: %d\n", statistics.accepted == 0 && statistics.size == ARROYO_UDF_STATISTICS_SIZE_1 - 1);
}

static void take(void* data, uint32_t level, const char* text) { (void)data, (void)level, (void)text; }

static void use_log(arroyo_udf_handle handle) {
  arroyo_udf_log log = {.size = sizeof log, .write = take, .later = OURS};
  print("log", table->set_log(handle, &log, &error));
  log.size = 8;
  print("small log", table->set_log(handle, &log, &error));
  log = (arroyo_udf_log){.size = sizeof log};
  print("log without a function", table->set_log(handle, &log, &error));
  print("no log", table->set_log(handle, NULL, &error));
}

static void use_error(arroyo_udf_handle handle) {
  arroyo_udf_status status = table->wait(handle, 9, 0, &error);
  printf("error: %d %d %d\n", (int)status, error.text != NULL, (int)error.retryable);
  clear();
  error.size = ARROYO_UDF_ERROR_SIZE_1;
  status = table->wait(handle, 9, 0, &error);
  printf("error of version 1: %d %d\n", (int)status, error.text != NULL);
  clear();
  error.size = ARROYO_UDF_ERROR_SIZE_1 - 1;
  status = table->wait(handle, 9, 0, &error);
  printf("small error: %d %d\n", (int)status, error.text != NULL);
  clear();
  printf("no error: %d\n", (int)table->wait(handle, 9, 0, NULL));
}

static void use_isolation(uint32_t same) {
  struct ArrowArray batch, results;
  const struct ArrowSchema* schema;
  const arroyo_udf_isolation* isolation = table->extension("isolation/1");
  printf("isolation: %d\n", isolation->size == ARROYO_UDF_ISOLATION_SIZE_1);
  arroyo_udf_isolation_options options = {.size = sizeof options, .mode = ARROYO_UDF_PROCESS, .later = OURS};
  arroyo_udf_instance instance = {.size = sizeof instance, .later = OURS};
  print("open, later option", isolation->open(&options, &instance, &error));
  options.size = ARROYO_UDF_ISOLATION_OPTIONS_SIZE_1 - 1;
  print("open, small options", isolation->open(&options, &instance, &error));
  options = (arroyo_udf_isolation_options){.size = sizeof options, .mode = ARROYO_UDF_PROCESS};
  instance.size = ARROYO_UDF_INSTANCE_SIZE_1 - 1;
  print("open, small instance", isolation->open(&options, &instance, &error));
  instance.size = sizeof instance;
  print("open", isolation->open(&options, &instance, &error));
  printf("instance: %d %d\n", instance.table != NULL, (int)instance.later);
  make(&batch);
  const arroyo_udf_status status = instance.table->run(instance.first + same, &batch, NULL, &results, &schema, &error);
  print("isolated run", status);
  if (status == ARROYO_UDF_OK) print_value("isolated value", &results, schema);
  print("close", isolation->close(&instance, &error));
}

int main(int argc, char** argv) {
  void* library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  table = dlsym(library, "arroyo_udf_plugin");
  clear();
  use_descriptor();
  uint32_t number[2] = {0, 0};
  const arroyo_udf_descriptor* plugin = table->describe();
  for (uint32_t i = 0; i < plugin->n_functions; i++) number[plugin->functions[i]->kind == ARROYO_UDF_ASYNC] = i;
  use_run(number[0]);
  const arroyo_udf_handle handle = use_start(number[1]);
  use_send(handle);
  use_statistics(handle);
  use_log(handle);
  use_isolation(number[0]);
  use_error(handle);
  print("release", table->release(handle, &error));
  print("statistics after release", table->statistics(handle, &(arroyo_udf_statistics){.size = 8}, &error));
  printf("released: %d\n", released);
  return 0;
}
