/* The engine's side of arroyo_udf.h in one file: opens a plugin, prints what it contains, and calls one function.
 *
 *     cc -Inative/include examples/host/c/host.c -o host -ldl
 *     ./host PLUGIN.so             prints what it contains
 *     ./host PLUGIN.so FUNCTION    calls it with five sample rows, of which the third is null, and prints the results
 *     ./host PLUGIN.so FUNCTION subinterpreter    the same in two workers; or: process
 *
 * Knows int64 ("l"), float64 ("g") and utf8 ("u") only; an engine uses its own Arrow library.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

enum { ROWS = 5, NULL_ROW = 2, MOST_ARGUMENTS = 16 };
static const uint64_t SECOND = UINT64_C(1000000000);

/* ---- A batch of arguments: its owner frees it, through its release callback -------------------------------------- */

struct batch {
  struct ArrowArray children[MOST_ARGUMENTS];
  struct ArrowArray* child_list[MOST_ARGUMENTS];
  const void* buffers[MOST_ARGUMENTS][3];
  const void* no_buffer[1];
  uint8_t validity[1];
  int64_t integers[MOST_ARGUMENTS][ROWS];
  double floats[MOST_ARGUMENTS][ROWS];
  int32_t offsets[ROWS + 1];
};
static const char TEXTS[] = "N14228" "N24211" "" "N3ALAA" "n535ua";
static const int32_t OFFSETS[ROWS + 1] = {0, 6, 12, 12, 18, 24};

static void release_child(struct ArrowArray* child) { child->release = NULL; }

static void release_batch(struct ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; i++)
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
  array->release = NULL;
  free(array->private_data);
}

/* Fills in *array with arguments of the types that the plugin states. False: an unknown type, or no memory. */
static bool make_batch(const struct ArrowSchema* arguments, struct ArrowArray* array) {
  struct batch* batch = arguments->n_children <= MOST_ARGUMENTS ? calloc(1, sizeof *batch) : NULL;
  if (batch == NULL) {
    fprintf(stderr, "too many arguments for this host, or no memory\n");
    return false;
  }
  batch->validity[0] = (uint8_t) ~(1u << NULL_ROW);
  memcpy(batch->offsets, OFFSETS, sizeof OFFSETS);
  for (int i = 0; i < arguments->n_children; i++) {
    const char* format = arguments->children[i]->format;
    const void** buffers = batch->buffers[i];
    for (int row = 0; row < ROWS; row++) {
      batch->integers[i][row] = 1000 + 100 * row - 10 * i;
      batch->floats[i][row] = 0.5 * row;
    }
    buffers[0] = batch->validity;
    buffers[1] = strcmp(format, "l") == 0   ? (const void*)batch->integers[i]
                 : strcmp(format, "g") == 0 ? (const void*)batch->floats[i]
                 : strcmp(format, "u") == 0 ? (const void*)batch->offsets
                                            : NULL;
    buffers[2] = TEXTS;
    if (buffers[1] == NULL) {
      fprintf(stderr, "argument %s: this host makes no values of type %s\n", arguments->children[i]->name, format);
      free(batch);
      return false;
    }
    batch->child_list[i] = &batch->children[i];
    batch->children[i] = (struct ArrowArray){.length = ROWS,
                                             .null_count = 1,
                                             .n_buffers = strcmp(format, "u") == 0 ? 3 : 2,
                                             .buffers = buffers,
                                             .release = release_child};
  }
  *array = (struct ArrowArray){.length = ROWS,
                               .n_buffers = 1,
                               .n_children = arguments->n_children,
                               .buffers = batch->no_buffer,
                               .children = batch->child_list,
                               .release = release_batch,
                               .private_data = batch};
  return true;
}

/* ---- Printing ---------------------------------------------------------------------------------------------------- */

/* On one line, because error texts may be tracebacks. */
static void print_text(const char* text, size_t length) {
  putchar('"');
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '\n') {
      printf("\\n");
    } else {
      if (text[i] == '"' || text[i] == '\\') putchar('\\');
      putchar(text[i]);
    }
  }
  putchar('"');
}

static void print_value(const char* format, const struct ArrowArray* array, int64_t row) {
  const int64_t i = array->offset + row;
  const uint8_t* validity = array->n_buffers > 0 ? array->buffers[0] : NULL;
  if (validity != NULL && !(validity[i / 8] >> (i % 8) & 1)) {
    printf("null");
  } else if (strcmp(format, "l") == 0) {
    printf("%lld", (long long)((const int64_t*)array->buffers[1])[i]);
  } else if (strcmp(format, "L") == 0) {
    printf("%llu", (unsigned long long)((const uint64_t*)array->buffers[1])[i]);
  } else if (strcmp(format, "S") == 0) {
    printf("%u", (unsigned)((const uint16_t*)array->buffers[1])[i]);
  } else if (strcmp(format, "C") == 0) {
    printf("%u", (unsigned)((const uint8_t*)array->buffers[1])[i]);
  } else if (strcmp(format, "g") == 0) {
    printf("%.17g", ((const double*)array->buffers[1])[i]);
  } else if (strcmp(format, "u") == 0) {
    const int32_t* offsets = (const int32_t*)array->buffers[1] + i;
    print_text((const char*)array->buffers[2] + offsets[0], (size_t)(offsets[1] - offsets[0]));
  } else {
    printf("(a value of type %s)", format);
  }
}

/* A plugin of a later version may send more fields. */
static void print_results(const struct ArrowSchema* schema, const struct ArrowArray* results) {
  for (int64_t row = 0; row < results->length; row++) {
    for (int64_t i = 0; i < results->n_children; i++) {
      printf("%s%s=", i == 0 ? "" : " ", schema->children[i]->name);
      print_value(schema->children[i]->format, results->children[i], results->offset + row);
    }
    printf("\n");
  }
}

static void print_type(const struct ArrowSchema* schema) {
  printf("%s%s", schema->format, schema->flags & ARROW_FLAG_NULLABLE ? "?" : "");
}

static const char* kind(const arroyo_udf_function* function) {
  if (function->kind == ARROYO_UDF_SYNC) return "sync";
  return function->kind == ARROYO_UDF_ASYNC ? "async" : "unknown";
}

static void print_description(const arroyo_udf_descriptor* plugin) {
  printf("plugin %s (%s)\n", plugin->name, plugin->language);
  for (uint64_t i = 0; i < plugin->n_functions; i++) {
    const arroyo_udf_function* function = plugin->functions[i];
    printf("%s %s(", kind(function), function->name);
    for (int64_t k = 0; k < function->arguments->n_children; k++) {
      printf("%s%s: ", k == 0 ? "" : ", ", function->arguments->children[k]->name);
      print_type(function->arguments->children[k]);
    }
    printf(") -> ");
    print_type(function->returns);
    printf("\n");
  }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* False: an error. Its text is read, then released. */
static bool check(const char* call, arroyo_udf_status status, arroyo_udf_error* error) {
  if (status < ARROYO_UDF_INVALID_ARGUMENT) return true;
  fprintf(stderr, "%s failed with status %d: %s\n", call, (int)status, error->text != NULL ? error->text : "no text");
  if (error->release != NULL) error->release(error);
  return false;
}

static bool call_sync(const arroyo_udf_table* table, uint32_t number, struct ArrowArray* batch) {
  arroyo_udf_error error = {.size = sizeof error};
  struct ArrowArray results;
  const struct ArrowSchema* schema;
  if (!check("run", table->run(number, batch, NULL, &results, &schema, &error), &error)) {
    batch->release(batch); /* not taken: ours to release */
    return false;
  }
  print_results(schema, &results);
  results.release(&results);
  return true;
}

/* Prints rows until there are none. */
static bool drain(const arroyo_udf_table* table, arroyo_udf_handle handle) {
  for (;;) {
    arroyo_udf_error error = {.size = sizeof error};
    struct ArrowArray results;
    const struct ArrowSchema* schema;
    const arroyo_udf_status status = table->drain_results(handle, 0, &results, &schema, &error);
    if (!check("drain_results", status, &error)) return false;
    if (status == ARROYO_UDF_END || status == ARROYO_UDF_WOULD_BLOCK) return true;
    print_results(schema, &results);
    results.release(&results);
  }
}

static bool call_async(const arroyo_udf_table* table, uint32_t number, struct ArrowArray* batch) {
  arroyo_udf_error error = {.size = sizeof error};
  arroyo_udf_handle handle;
  arroyo_udf_status status = table->start(number, NULL, &handle, &error);
  if (!check("start", status, &error)) {
    batch->release(batch);
    return false;
  }
  status = table->send(handle, 1, batch, NULL, &error);
  bool fine = check("send", status, &error);
  if (status != ARROYO_UDF_OK) batch->release(batch); /* not taken; after WOULD_BLOCK an engine would wait and resend */
  if (fine && status == ARROYO_UDF_OK) {
    fine = check("wait", table->wait(handle, ARROYO_UDF_RESULTS, 10 * SECOND, &error), &error) && drain(table, handle);
  }
  /* Lets running rows finish; the remaining rows come out of drain_results, until END. */
  status = table->stop_runtime(handle, ARROYO_UDF_DRAIN, 10 * SECOND, &error);
  if (status == ARROYO_UDF_STUCK) fprintf(stderr, "a call ignored its cancellation\n");
  fine = check("stop_runtime", status, &error) && fine;
  fine = fine && drain(table, handle);
  return check("release", table->release(handle, &error), &error) && fine;
}

/* Calls function number `number` of a plugin with one batch. */
static bool call(const arroyo_udf_table* table, uint32_t number, const arroyo_udf_function* function) {
  struct ArrowArray batch;
  if (!make_batch(function->arguments, &batch)) return false;
  return (function->kind == ARROYO_UDF_ASYNC ? call_async : call_sync)(table, number, &batch);
}

/* The same in two workers: an instance takes the place of the plugin, until it is closed. */
static bool call_isolated(const arroyo_udf_table* table, uint32_t number, const arroyo_udf_function* function,
                          const char* mode) {
  const arroyo_udf_isolation* isolation = table->extension("isolation/1");
  if (isolation == NULL || isolation->size < ARROYO_UDF_ISOLATION_SIZE_1) {
    fprintf(stderr, "this plugin has no isolation\n");
    return false;
  }
  const arroyo_udf_isolation_options options = {
      .size = sizeof options,
      .mode = strcmp(mode, "process") == 0 ? ARROYO_UDF_PROCESS : ARROYO_UDF_SUBINTERPRETER,
      .workers = 2,
  };
  arroyo_udf_instance instance = {.size = sizeof instance};
  arroyo_udf_error error = {.size = sizeof error};
  if (!check("open", isolation->open(&options, &instance, &error), &error)) return false;
  const bool fine = call(instance.table, instance.first + number, function);
  return check("close", isolation->close(&instance, &error), &error) && fine;
}

/* ---- Loading ----------------------------------------------------------------------------------------------------- */

/* A plugin's table, or NULL and a line on stderr. Checks magic, version and size before it reads anything else. */
static const arroyo_udf_table* load(const char* path) {
  /* A name without a slash would be looked for in the system's folders of libraries. */
  char here[4096];
  snprintf(here, sizeof here, "./%s", path);
  void* library = dlopen(strchr(path, '/') == NULL ? here : path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == NULL) {
    fprintf(stderr, "cannot load: %s\n", dlerror());
    return NULL;
  }
  const arroyo_udf_table* table = dlsym(library, "arroyo_udf_plugin");
  if (table == NULL) {
    fprintf(stderr, "not a plugin: %s has no symbol arroyo_udf_plugin\n", path);
  } else if (table->magic != ARROYO_UDF_MAGIC) {
    fprintf(stderr, "not a plugin, or built before ABI version 1 was final (build it again): the table of %s does not "
            "begin with the magic number\n", path);
  } else if (table->abi_version != ARROYO_UDF_ABI_VERSION) {
    fprintf(stderr, "%s has ABI version %u, this host has %u: build it again\n", path, (unsigned)table->abi_version,
            (unsigned)ARROYO_UDF_ABI_VERSION);
  } else if (table->table_size < ARROYO_UDF_TABLE_SIZE_1) { /* this host calls no later slots */
    fprintf(stderr, "the table of %s is truncated: it has %u bytes, this host needs %u\n", path,
            (unsigned)table->table_size, (unsigned)ARROYO_UDF_TABLE_SIZE_1);
  } else {
    return table;
  }
  return NULL; /* the library stays open: plugins are never unloaded */
}

/* Whether a descriptor and its functions are there, and not smaller than in version 1. They may be larger. */
static bool is_known(const arroyo_udf_descriptor* plugin) {
  if (plugin == NULL || plugin->size < ARROYO_UDF_DESCRIPTOR_SIZE_1) return false;
  for (uint64_t i = 0; i < plugin->n_functions; i++)
    if (plugin->functions[i] == NULL || plugin->functions[i]->size < ARROYO_UDF_FUNCTION_SIZE_1) return false;
  return true;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: %s PLUGIN.so [FUNCTION [subinterpreter|process]]\n", argv[0]);
    return 2;
  }
  const arroyo_udf_table* table = load(argv[1]);
  if (table == NULL) return 1;
  const arroyo_udf_descriptor* plugin = table->describe();
  if (!is_known(plugin)) {
    fprintf(stderr, "the descriptor of %s breaks the contract\n", argv[1]);
    return 1;
  }
  if (argc == 2) {
    print_description(plugin);
    return 0;
  }
  for (uint32_t i = 0; i < plugin->n_functions; i++) {
    const arroyo_udf_function* function = plugin->functions[i];
    if (strcmp(function->name, argv[2]) != 0) continue;
    if (strcmp(kind(function), "unknown") == 0) {
      fprintf(stderr, "function %s has kind %u, which this host cannot call\n", argv[2], (unsigned)function->kind);
      return 1;
    }
    return (argc == 3 ? call(table, i, function) : call_isolated(table, i, function, argv[3])) ? 0 : 1;
  }
  fprintf(stderr, "plugin %s has no function %s\n", plugin->name, argv[2]);
  return 1;
}
