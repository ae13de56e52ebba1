/* A host that is not Python, and looks when libpython comes: opens plugins one after the other, and calls function 0 of
 * each, which takes and returns an int64.
 *
 *     late [refuse] PLUGIN...
 *
 * For each plugin it prints whether libpython is there after `describe`, the value for 1 or the error, and whether libpython
 * is there then. With "refuse", there is no file in memory at the first try: if a call fails, the host permits them, and
 * calls once more. The last line counts the files in memory that are open. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arroyo_udf.h"

static bool refuse;

/* In place of the C library's, because the executable comes first. */
int memfd_create(const char *name, unsigned int flags) {
  static int (*real)(const char *, unsigned int);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "memfd_create");
  if (!refuse) return real(name, flags);
  errno = EPERM;
  return -1;
}

static const char *libpython(void) {
  char line[5000];
  const char *found = "without libpython";
  FILE *const maps = fopen("/proc/self/maps", "r");
  if (!maps) return "unknown";
  while (fgets(line, sizeof line, maps))
    if (strstr(line, "/libpython")) found = "with libpython";
  fclose(maps);
  return found;
}

static int files_in_memory(void) {
  int n = 0;
  DIR *const folder = opendir("/proc/self/fd");
  for (struct dirent *one; (one = readdir(folder));) {
    char path[300], to[300] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
    if (readlink(path, to, sizeof to - 1) > 0 && strstr(to, "memfd:arroyo")) n++;
  }
  closedir(folder);
  return n;
}

static void keep(struct ArrowArray *array) { array->release = NULL; }

static bool call(const arroyo_udf_table *table) {
  static int64_t one = 1;
  static const void *column_buffers[2] = {NULL, &one}, *struct_buffers[1];
  struct ArrowArray column = {.length = 1, .n_buffers = 2, .buffers = column_buffers, .release = keep};
  struct ArrowArray *columns[1] = {&column};
  struct ArrowArray batch = {
      .length = 1, .n_buffers = 1, .buffers = struct_buffers, .n_children = 1, .children = columns, .release = keep};
  struct ArrowArray results;
  const struct ArrowSchema *schema;
  arroyo_udf_error error = {.size = sizeof error};
  const arroyo_udf_status status = table->run(0, &batch, NULL, &results, &schema, &error);
  if (status == ARROYO_UDF_OK) {
    const struct ArrowArray *const value = results.children[0];
    printf("%lld, %s\n", (long long)((const int64_t *)value->buffers[1])[value->offset], libpython());
    results.release(&results);
    return true;
  }
  printf("%d, retryable %d, %s: %s\n", status, error.retryable, libpython(), error.text ? error.text : "");
  if (error.release) error.release(&error);
  return false;
}

int main(int count, char **words) {
  const bool refuses = count > 1 && !strcmp(words[1], "refuse");
  for (int i = refuses ? 2 : 1; i < count; i++) {
    void *const library = dlopen(words[i], RTLD_NOW | RTLD_LOCAL);
    const arroyo_udf_table *const table = library ? dlsym(library, "arroyo_udf_plugin") : NULL;
    if (!table) return puts(dlerror()), 1;
    printf("%s, %s\n", table->describe()->name, libpython());
    refuse = refuses;
    if (!call(table)) {
      refuse = false;
      call(table);
    }
  }
  printf("%d files in memory are open\n", files_in_memory());
  return 0;
}
