/* A plugin written in Python: the outer of its two libraries, which is the one that hosts open. It is made of this file,
 * `plugin_data.h`, which is generated and has the descriptor, the parcel (the source, and what it imports from its
 * folder) and the interpreter's path, and the bytes of the inner library (plugin_inner.h).
 *
 * GUARANTEES  Opening the library and `describe` start nothing, and need no libpython. The first `run`, `start` or
 *             instance opens the inner library, which joins the interpreter of the process, or boots one. If the
 *             environment is why that fails, a later call tries again. The other slots forward to the table of the
 *             native core without taking the GIL.
 * ASSUMES     The library is never unloaded (-z nodelete). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "arroyo_udf_c_slots.h"
#include "native_table.h"
#include "plugin_inner.h"
#include "room.h"
#include "plugin_data.h"

static char library_path[PATH_MAX]; /* of this library; empty if unknown */

/* At once, because a path may be relative, and the process may change its folder. */
__attribute__((constructor)) static void find_library(void) {
  Dl_info library;
  if (!dladdr(library_path, &library) || !realpath(library.dli_fname, library_path)) library_path[0] = 0;
}

/* In a worker process Python runs all rows, because it writes each one down by its place in the batch: see worker.py. */
static bool is_worker;
__attribute__((constructor)) static void find_worker(void) { is_worker = getenv("ARROYO_UDF_IN_WORKER") != NULL; }

static const arroyo_udf_c_python PYTHON = {
    .size = sizeof(arroyo_udf_c_python),
    .format = PLUGIN_FORMAT,
    .parcel = PARCEL,
    .library = library_path,
    .python = PLUGIN_PYTHON,
};
static shared_plugin plugin = {.descriptor = &DESCRIPTOR, .python = &PYTHON};

#include "opening.h"

/* The core's table, once the plugin has started, which starts Python. NULL: see `why_no_table`. */
static const arroyo_udf_table *python_table(void) {
  const arroyo_udf_table *table = __atomic_load_n(&plugin.core, __ATOMIC_ACQUIRE);
  if (table) return table;
  const inner_table *with = opened();
  return with ? with->start(true) : NULL;
}

/* The text of the latest failure, for the caller to free; NULL: out of memory. */
static char *why_no_table(arroyo_udf_status *status, bool *retryable) {
  const inner_table *with = __atomic_load_n(&inner, __ATOMIC_ACQUIRE);
  return with ? with->why_not_started(status, retryable) : why_not_opened(status, retryable);
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

static arroyo_udf_status refuse(arroyo_udf_status status, const char *text, arroyo_udf_error *error) {
  if (error && error->size >= ARROYO_UDF_ERROR_SIZE_1) error->text = text; /* constant: no release */
  return status;
}

static void free_text(arroyo_udf_error *error) {
  free(error->private_data);
  error->text = NULL;
  error->release = NULL;
}

static arroyo_udf_status not_started(arroyo_udf_error *error) {
  arroyo_udf_status status;
  bool retryable;
  char *text = why_no_table(&status, &retryable);
  refuse(status, text ? text : "out of memory", error);
  if (text && error && error->text == text) {
    error->release = free_text;
    error->private_data = text;
    error->retryable = retryable ? ARROYO_UDF_YES : 0;
  } else {
    free(text);
  }
  return status;
}

static arroyo_udf_status no_function(arroyo_udf_error *error) {
  return refuse(ARROYO_UDF_INVALID_ARGUMENT, "plugin \"" PLUGIN_NAME "\": no function has this number, see describe",
                error);
}

static const arroyo_udf_descriptor *describe(void) { return &DESCRIPTOR; }

static arroyo_udf_status python_run(uint32_t function, struct ArrowArray *arguments,
                                    const arroyo_udf_batch_context *context, struct ArrowArray *results,
                                    const struct ArrowSchema **schema, arroyo_udf_error *error) {
  const arroyo_udf_table *table = python_table();
  if (!table) return not_started(error);
  arroyo_udf_status status = table->run(plugin.base + function, arguments, context, results, schema, error);
  if (plugin.guard_exit) plugin.guard_exit();
  return status;
}

static arroyo_udf_status run(uint32_t function, struct ArrowArray *arguments, const arroyo_udf_batch_context *context,
                             struct ArrowArray *results, const struct ArrowSchema **schema, arroyo_udf_error *error) {
  if (function >= DESCRIPTOR.n_functions) return no_function(error);
#ifdef PLUGIN_HAS_NATIVE
  if (native_functions[function] && !is_worker)
    return native_run(function, FUNCTIONS[function], arguments, context, results, schema, error, python_run);
#endif
  return python_run(function, arguments, context, results, schema, error);
}

static arroyo_udf_status start(uint32_t function, const arroyo_udf_options *options, arroyo_udf_handle *handle,
                               arroyo_udf_error *error) {
  if (function >= DESCRIPTOR.n_functions) return no_function(error);
  const arroyo_udf_table *table = python_table();
  if (!table) return not_started(error);
  arroyo_udf_status status = table->start(plugin.base + function, options, handle, error);
  if (plugin.guard_exit) plugin.guard_exit();
  return status;
}

static const arroyo_udf_c_opener *opener(arroyo_udf_status *status, arroyo_udf_error *error) {
  const inner_table *with = opened();
  const arroyo_udf_table *table = with ? with->start(false) : NULL;
  const arroyo_udf_c_opener *opener = table ? table->extension(ARROYO_UDF_C_OPENER) : NULL;
  if (!table)
    *status = not_started(error);
  else if (!opener)
    *status = refuse(ARROYO_UDF_ENVIRONMENT,
                     "plugin \"" PLUGIN_NAME "\": the installed arroyo_udf_plugin has no isolation: install a newer one",
                     error);
  return opener;
}

static arroyo_udf_status open_instance(const arroyo_udf_isolation_options *options, arroyo_udf_instance *instance,
                                       arroyo_udf_error *error) {
  arroyo_udf_status status = ARROYO_UDF_OK;
  const arroyo_udf_c_opener *with = opener(&status, error);
  return with ? with->open(&arroyo_udf_plugin, options, instance, error) : status;
}

static arroyo_udf_status close_instance(const arroyo_udf_instance *instance, arroyo_udf_error *error) {
  arroyo_udf_status status = ARROYO_UDF_OK;
  const arroyo_udf_c_opener *with = opener(&status, error);
  return with ? with->close(&arroyo_udf_plugin, instance, error) : status;
}

static const arroyo_udf_isolation ISOLATION = {
    .size = sizeof(arroyo_udf_isolation),
    .open = open_instance,
    .close = close_instance,
};

/* The other slots. Before the plugin has started there is no handle. Drained results mean that user code has run. The
 * installed core may be older than this plugin and lack slots of later versions. */
#define NO_SLOT(slot) "plugin \"" PLUGIN_NAME "\": the installed arroyo_udf_plugin has no " #slot ": install a newer one"
#define HAS(table, slot) \
  (offsetof(arroyo_udf_table, slot) < ARROYO_UDF_TABLE_SIZE_1 || offsetof(arroyo_udf_table, slot) < (table)->table_size)
#define NOT_A_HANDLE "plugin \"" PLUGIN_NAME "\": not a handle, nothing was started: call start first"
#define SHOWS_USER_CODE(slot) (offsetof(arroyo_udf_table, slot) == offsetof(arroyo_udf_table, drain_results))
#define FORWARD(slot, parameters, arguments)                                                        \
  static arroyo_udf_status forward_##slot parameters {                                              \
    const arroyo_udf_table *table = __atomic_load_n(&plugin.core, __ATOMIC_ACQUIRE);                \
    if (!table) return refuse(ARROYO_UDF_INVALID_STATE, NOT_A_HANDLE, error);                       \
    if (!HAS(table, slot)) return refuse(ARROYO_UDF_NOT_IMPLEMENTED, NO_SLOT(slot), error);         \
    arroyo_udf_status status = table->slot arguments;                                               \
    if (SHOWS_USER_CODE(slot) && status == ARROYO_UDF_OK && plugin.guard_exit) plugin.guard_exit(); \
    return status;                                                                                  \
  }
#define FORWARDER(slot, parameters, arguments) .slot = forward_##slot,

ARROYO_UDF_C_SLOTS(FORWARD)

static void count_native(uint32_t function, uint64_t *rows, uint64_t *deferred) {
  *rows = *deferred = 0;
#ifdef PLUGIN_HAS_NATIVE
  if (function < DESCRIPTOR.n_functions && native_functions[function]) native_count_rows(function, rows, deferred);
#endif
}

static arroyo_udf_status run_fused(const arroyo_udf_fused_call *calls, uint32_t n_calls,
                                   const struct ArrowArray *columns, struct ArrowArray *results, uint64_t *deferred,
                                   uint64_t *counts, arroyo_udf_error *error) {
#ifdef PLUGIN_HAS_NATIVE
  return native_run_fused(FUNCTIONS, (uint32_t)DESCRIPTOR.n_functions, calls, n_calls, columns, results, deferred,
                          counts, error);
#else
  return refuse(ARROYO_UDF_INVALID_ARGUMENT, "plugin \"" PLUGIN_NAME "\": no function is native", error);
#endif
}

static const arroyo_udf_native NATIVE_FUNCTIONS = {
    .size = sizeof(arroyo_udf_native),
    .n_functions = sizeof NOT_NATIVE / sizeof *NOT_NATIVE,
    .reasons = NOT_NATIVE,
    .count = count_native,
    .run_fused = run_fused,
};

/* Of its own, or of the core's, once the plugin has started. */
static const void *extension(const char *id) {
  if (id && !strcmp(id, ARROYO_UDF_C_PYTHON)) return &PYTHON;
  if (id && !strcmp(id, "isolation/1")) return &ISOLATION;
  if (id && !strcmp(id, "native/1")) return &NATIVE_FUNCTIONS;
  const arroyo_udf_table *table = __atomic_load_n(&plugin.core, __ATOMIC_ACQUIRE);
  return table && HAS(table, extension) ? table->extension(id) : NULL;
}

ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {
    .magic = ARROYO_UDF_MAGIC,
    .abi_version = ARROYO_UDF_ABI_VERSION,
    .table_size = sizeof(arroyo_udf_table),
    .describe = describe,
    .run = run,
    .start = start,
    ARROYO_UDF_C_SLOTS(FORWARDER)
    .extension = extension,
};

#ifdef ARROYO_FUNCTION
#include "arroyo.h"
#endif
