/* What the measuring hosts share: opening a plugin, errors, clocks, medians, and one JSON object per figure. Any error
 * is printed on stderr and ends the program with status 1. */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arroyo_udf.h"

static inline void check(const char* what, arroyo_udf_status status, const arroyo_udf_error* error) {
  if (status == ARROYO_UDF_OK) return;
  fprintf(stderr, "%s returned status %d: %s\n", what, (int)status, error->text != NULL ? error->text : "no text");
  exit(1);
}

static inline const arroyo_udf_table* open_plugin(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const arroyo_udf_table* table = library != NULL ? dlsym(library, "arroyo_udf_plugin") : NULL;
  if (table == NULL || table->magic != ARROYO_UDF_MAGIC || table->abi_version != ARROYO_UDF_ABI_VERSION) {
    const char* why = library == NULL ? dlerror() : "no table, or one of another version";
    fprintf(stderr, "%s is not a plugin of ABI version %d: %s\n", path, ARROYO_UDF_ABI_VERSION, why);
    exit(1);
  }
  return table;
}

/* The number of a function that has 1 to most_arguments arguments, all of the format. */
static inline uint32_t find_function_of(const arroyo_udf_table* table, const char* name, int64_t most_arguments,
                                        const char* format) {
  const arroyo_udf_descriptor* plugin = table->describe();
  for (uint32_t i = 0; i < plugin->n_functions; i++) {
    const struct ArrowSchema* arguments = plugin->functions[i]->arguments;
    if (strcmp(plugin->functions[i]->name, name) != 0) continue;
    bool fits = arguments->n_children <= most_arguments;
    for (int64_t k = 0; k < arguments->n_children; k++)
      fits = fits && strcmp(arguments->children[k]->format, format) == 0;
    if (fits) return i;
  }
  fprintf(stderr, "%s has no function %s of 1 to %d arguments \"%s\"\n", plugin->name, name, (int)most_arguments, format);
  exit(1);
}

static inline uint32_t find_function(const arroyo_udf_table* table, const char* name, int64_t most_arguments) {
  return find_function_of(table, name, most_arguments, "l");
}

static inline int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Sorts the values. `part` 0.99 is the 99th percentile. */
static inline double quantile(double* values, size_t n, double part) {
  qsort(values, n, sizeof *values, by_value);
  return values[(size_t)((double)n * part)];
}

static inline double median(double* values, size_t n) { return quantile(values, n, 0.5); }

static inline void report(const char* name, double value) {
  printf("{\"name\": \"%s\", \"value\": %.3f}\n", name, value);
}

#endif
