/* A host that is not Python, for the tests: opens plugins, calls function 0 of each from several threads at once, and
 * returns from main while started functions still run.
 *
 *     host THREADS PLUGIN...
 *
 * Function 0 takes one int64. The host runs a sync one for 1, 2, null and prints its int64 values; it starts an async one,
 * sends the same rows and drains nothing. The last line is "SIGINT is the host's", if the handler is unchanged. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "arroyo_udf.h"

#define MOST 16
static pthread_barrier_t together;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static int64_t values[3] = {1, 2, 0};
static uint8_t valid = 3;
static const void *column_buffers[2] = {&valid, values}, *struct_buffers[1];

static void keep(struct ArrowArray *array) { array->release = NULL; }

static void print(const arroyo_udf_table *table, const char *what, arroyo_udf_status status, arroyo_udf_error *error) {
  printf("%s: %s %d %s\n", table->describe()->name, what, status, error->text ? error->text : "");
  if (error->release) error->release(error);
}

static void *call(void *data) {
  const arroyo_udf_table *table = data;
  struct ArrowArray column = {.length = 3, .null_count = 1, .n_buffers = 2, .buffers = column_buffers, .release = keep};
  struct ArrowArray *columns[1] = {&column};
  struct ArrowArray batch = {
      .length = 3, .n_buffers = 1, .buffers = struct_buffers, .n_children = 1, .children = columns, .release = keep};
  struct ArrowArray results;
  const struct ArrowSchema *schema;
  arroyo_udf_error error = {.size = sizeof error};
  pthread_barrier_wait(&together);
  if (table->describe()->functions[0]->kind == ARROYO_UDF_ASYNC) {
    struct ArrowArray **kept = malloc(sizeof *kept); /* sent arrays outlive this thread */
    *kept = malloc(sizeof **kept);
    **kept = column;
    batch.children = kept;
    arroyo_udf_handle handle;
    arroyo_udf_status status = table->start(0, NULL, &handle, &error);
    print(table, "start", status, &error);
    if (status == ARROYO_UDF_OK) {
      error = (arroyo_udf_error){.size = sizeof error};
      print(table, "send", table->send(handle, 0, &batch, NULL, &error), &error);
    }
    return NULL;
  }
  arroyo_udf_status status = table->run(0, &batch, NULL, &results, &schema, &error);
  pthread_mutex_lock(&printing);
  if (status != ARROYO_UDF_OK) {
    print(table, "run", status, &error);
  } else {
    const struct ArrowArray *value = results.children[0];
    const uint8_t *validity = value->buffers[0];
    printf("%s:", table->describe()->name);
    for (int i = 0; i < results.length; i++) {
      int row = i + (int)value->offset;
      if (validity && !(validity[row / 8] >> row % 8 & 1))
        printf(" null");
      else
        printf(" %lld", (long long)((const int64_t *)value->buffers[1])[row]);
    }
    printf("\n");
    results.release(&results);
  }
  pthread_mutex_unlock(&printing);
  return NULL;
}

int main(int argc, char **argv) {
  signal(SIGINT, SIG_DFL); /* a shell ignores it for background processes */
  int threads = atoi(argv[1]), plugins = argc - 2;
  pthread_t running[MOST];
  if (threads * plugins > MOST) return 2;
  pthread_barrier_init(&together, NULL, threads * plugins);
  for (int p = 0; p < plugins; p++) {
    void *library = dlopen(argv[p + 2], RTLD_NOW | RTLD_LOCAL);
    const arroyo_udf_table *table = library ? dlsym(library, "arroyo_udf_plugin") : NULL;
    if (!table) {
      puts(dlerror());
      return 1;
    }
    for (int t = 0; t < threads; t++) pthread_create(&running[p * threads + t], NULL, call, (void *)table);
  }
  for (int i = 0; i < threads * plugins; i++) pthread_join(running[i], NULL);
  struct sigaction now;
  sigaction(SIGINT, NULL, &now);
  if (now.sa_handler == SIG_DFL) puts("SIGINT is the host's");
  return 0;
}
