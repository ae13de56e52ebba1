/* A host that sets a log: starts function number 0 (int64 -> int64), whose calls ignore their cancellation, sends one row
 * with a timeout, and prints what is reported. Ends at once, because the call goes on. */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arroyo_udf.h"

static sem_t reported;

static void take(void* data, uint32_t level, const char* text) {
  printf("%s %u: %.*s\n", (const char*)data, (unsigned)level, (int)strcspn(text, "\n"), text);
  fflush(stdout);
  sem_post(&reported);
}

static int waited(void) { /* 0: within a minute */
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  return sem_timedwait(&reported, &until);
}

static void release(struct ArrowArray* array) { array->release = NULL; }

int main(int argc, char** argv) {
  void* library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  const arroyo_udf_table* table = dlsym(library, "arroyo_udf_plugin");
  static const int64_t number = 1;
  const void* buffers[2] = {NULL, &number};
  struct ArrowArray child = {.length = 1, .n_buffers = 2, .buffers = buffers, .release = release};
  struct ArrowArray* children[1] = {&child};
  struct ArrowArray batch = {
      .length = 1, .n_buffers = 1, .n_children = 1, .buffers = buffers, .children = children, .release = release};
  arroyo_udf_options options = {.size = sizeof options, .timeout_ns = 1000000, .max_stuck = 9};
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_handle handle;
  sem_init(&reported, 0, 0);
  if (table->start(0, &options, &handle, &error)) return fprintf(stderr, "%s\n", error.text), 1;
  arroyo_udf_log log = {.size = sizeof log, .write = take, .data = "former"};
  if (table->set_log(handle, &log, NULL)) return 2;
  log.data = "log";
  if (table->set_log(handle, &log, NULL)) return 2;
  memset(&log, 0, sizeof log); /* it was copied */
  if (table->send(handle, 0, &batch, NULL, NULL)) return 3;
  if (waited()) return 4;
  printf("stop: %d\n", (int)table->stop_runtime(handle, ARROYO_UDF_CANCEL, 0, NULL));
  if (waited()) return 5;
  printf("again: %d\n", (int)table->stop_runtime(handle, ARROYO_UDF_CANCEL, 0, NULL));
  printf("release: %d\n", (int)table->release(handle, NULL));
  printf("more: %d\n", (int)(sem_trywait(&reported) == 0));
  fflush(stdout);
  _exit(0);
}
