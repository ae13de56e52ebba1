/* A plugin whose table is written by hand, without the headers for authors: what another language must do.
 *
 * It has one sync function, kilometres(miles: int64) -> float64, whose argument is not nullable. Read arroyo_udf.h
 * first; the comments here say how to keep its rules.
 *
 *     cc -O2 -shared -fPIC -fvisibility=hidden -Wl,-z,nodelete -Inative/include examples/by_hand/udf.c -o libby_hand.so
 */
#include <stdlib.h>
#include <string.h>

#include "arroyo_udf.h"

/* The builder defines these two. */
#ifndef ARROYO_UDF_PLUGIN_HASH
#define ARROYO_UDF_PLUGIN_HASH "0"
#endif
#ifndef ARROYO_UDF_TOOLKIT_VERSION
#define ARROYO_UDF_TOOLKIT_VERSION "none"
#endif

/* ---- The descriptor: constants, so describe runs no code and nothing is freed ------------------------------------ */

static const struct ArrowSchema miles = {.format = "l", .name = "miles"}; /* no flag: not nullable */
static struct ArrowSchema* const argument_list[] = {(struct ArrowSchema*)&miles};
static const struct ArrowSchema arguments_schema = {
    .format = "+s", .name = "", .n_children = 1, .children = (struct ArrowSchema**)argument_list};
static const struct ArrowSchema returns = {.format = "g", .name = ""};

/* Results: a struct with the one field `value`, null where the argument is null. This function has no row errors. */
static const struct ArrowSchema value = {.format = "g", .name = "value", .flags = ARROW_FLAG_NULLABLE};
static struct ArrowSchema* const field_list[] = {(struct ArrowSchema*)&value};
static const struct ArrowSchema results_schema = {
    .format = "+s", .name = "", .n_children = 1, .children = (struct ArrowSchema**)field_list};

static const arroyo_udf_function kilometres = {.size = sizeof(arroyo_udf_function),
                                               .name = "kilometres",
                                               .kind = ARROYO_UDF_SYNC,
                                               .arguments = &arguments_schema,
                                               .returns = &returns,
                                               .documentation = "Converts miles to kilometres.",
                                               .volatility = ARROYO_UDF_IMMUTABLE};
static const arroyo_udf_function* const function_list[] = {&kilometres};

static const arroyo_udf_descriptor descriptor = {.size = sizeof(arroyo_udf_descriptor),
                                                 .name = "by_hand",
                                                 .language = "c",
                                                 .toolkit_version = ARROYO_UDF_TOOLKIT_VERSION,
                                                 .hash = ARROYO_UDF_PLUGIN_HASH,
                                                 .n_functions = 1,
                                                 .functions = function_list};

static const arroyo_udf_descriptor* describe(void) { return &descriptor; }

/* A failed call returns a status and a text; a constant text needs no release. The host may want no text, and its struct
 * may be smaller or larger than ours: we write only what version 1 has. */
static arroyo_udf_status fail(arroyo_udf_error* error, arroyo_udf_status status, const char* text) {
  if (error != NULL && error->size >= ARROYO_UDF_ERROR_SIZE_1) {
    error->text = text;
    error->retryable = status == ARROYO_UDF_OUT_OF_MEMORY ? ARROYO_UDF_YES : 0;
  }
  return status;
}

/* ---- Results: the struct array is one allocation, its only child another ----------------------------------------- */

/* The child has its own, because a host may move it out of the struct and release it after the struct. */
struct numbers {
  const void* buffers[2];
  double* values;
  uint8_t* validity;
};
struct shell {
  const void* buffers[1];
  struct ArrowArray* children[1];
  struct ArrowArray child;
};

static void release_numbers(struct ArrowArray* array) {
  struct numbers* numbers = array->private_data;
  free(numbers->values);
  free(numbers->validity);
  free(numbers);
  array->release = NULL; /* how Arrow says "released" */
}

static void release_shell(struct ArrowArray* array) {
  struct shell* shell = array->private_data;
  if (shell->child.release != NULL) shell->child.release(&shell->child); /* not moved out: ours to release */
  free(shell);
  array->release = NULL;
}

/* Returns 0 if there is no memory; then nothing is allocated. */
static int make_results(int64_t length, struct ArrowArray* results) {
  struct shell* shell = calloc(1, sizeof *shell);
  struct numbers* numbers = calloc(1, sizeof *numbers);
  double* values = calloc((size_t)length + 1, sizeof *values); /* + 1: calloc(0) may return NULL */
  uint8_t* validity = calloc((size_t)length / 8 + 1, 1);       /* all null */
  if (shell == NULL || numbers == NULL || values == NULL || validity == NULL) {
    free(shell);
    free(numbers);
    free(values);
    free(validity);
    return 0;
  }
  *numbers = (struct numbers){{validity, values}, values, validity};
  shell->child = (struct ArrowArray){.length = length,
                                     .null_count = -1, /* not counted */
                                     .n_buffers = 2,
                                     .buffers = numbers->buffers,
                                     .release = release_numbers,
                                     .private_data = numbers};
  shell->children[0] = &shell->child;
  *results = (struct ArrowArray){.length = length,
                                 .n_buffers = 1,
                                 .n_children = 1,
                                 .buffers = shell->buffers,
                                 .children = shell->children,
                                 .release = release_shell,
                                 .private_data = shell};
  return 1;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* Whether row i is not null: bit `offset + i`, least significant first. No buffer: no row is null. */
static int is_valid(const struct ArrowArray* array, int64_t i) {
  const uint8_t* validity = array->buffers[0];
  const int64_t bit = array->offset + i;
  return array->null_count == 0 || validity == NULL || (validity[bit / 8] >> (bit % 8) & 1);
}

static arroyo_udf_status run(uint32_t function, struct ArrowArray* arguments, const arroyo_udf_batch_context* context,
                             struct ArrowArray* results, const struct ArrowSchema** schema, arroyo_udf_error* error) {
  struct ArrowArray made;
  (void)context; /* a deadline and a trace: nothing here takes long */
  /* Check everything first. Until the status is OK, the arguments belong to the host, and outputs stay untouched. */
  if (function != 0) return fail(error, ARROYO_UDF_INVALID_ARGUMENT, "plugin by_hand has one function, number 0");
  if (arguments == NULL || arguments->release == NULL || results == NULL || schema == NULL ||
      arguments->n_children != 1 || arguments->length < 0 || arguments->offset < 0 || arguments->n_buffers != 1 ||
      arguments->buffers == NULL || arguments->children == NULL)
    return fail(error, ARROYO_UDF_INVALID_ARGUMENT, "plugin by_hand, kilometres: send a struct array with one child");
  const struct ArrowArray* column = arguments->children[0];
  if (column == NULL || column->release == NULL || column->n_buffers != 2 || column->buffers == NULL ||
      column->offset < 0 || column->length < arguments->offset || column->length - arguments->offset < arguments->length ||
      (arguments->length > 0 && column->buffers[1] == NULL))
    return fail(error, ARROYO_UDF_INVALID_ARGUMENT, "plugin by_hand, kilometres: miles must be an int64 array");

  if (!make_results(arguments->length, &made)) return fail(error, ARROYO_UDF_OUT_OF_MEMORY, "plugin by_hand: out of memory");
  const struct numbers* numbers = made.children[0]->private_data;
  const int64_t* values = column->buffers[1];
  for (int64_t i = 0; i < arguments->length; i++) {
    /* Row i of the batch is row `arguments->offset + i` of its child, which may have an offset of its own. */
    const int64_t row = arguments->offset + i;
    if (!is_valid(arguments, i) || !is_valid(column, row)) continue; /* null in, null out */
    numbers->values[i] = (double)values[column->offset + row] * 1.609344;
    numbers->validity[i / 8] |= (uint8_t)(1u << (i % 8));
  }
  arguments->release(arguments); /* OK moves it to us: release it, in this thread */
  *results = made;
  *schema = &results_schema;
  return ARROYO_UDF_OK;
}

/* ---- Async slots: never NULL; they return NOT_IMPLEMENTED -------------------------------------------------------- */

static arroyo_udf_status no_async(arroyo_udf_error* error) {
  return fail(error, ARROYO_UDF_NOT_IMPLEMENTED, "plugin by_hand has only sync functions: call run");
}
static arroyo_udf_status start(uint32_t function, const arroyo_udf_options* options, arroyo_udf_handle* handle,
                               arroyo_udf_error* error) {
  (void)function, (void)options, (void)handle;
  return no_async(error);
}
static arroyo_udf_status send(arroyo_udf_handle handle, uint64_t first_id, struct ArrowArray* arguments,
                              const arroyo_udf_batch_context* context, arroyo_udf_error* error) {
  (void)handle, (void)first_id, (void)arguments, (void)context;
  return no_async(error);
}
static arroyo_udf_status drain_results(arroyo_udf_handle handle, uint64_t max_rows, struct ArrowArray* results,
                                       const struct ArrowSchema** schema, arroyo_udf_error* error) {
  (void)handle, (void)max_rows, (void)results, (void)schema;
  return no_async(error);
}
static arroyo_udf_status wait(arroyo_udf_handle handle, uint32_t condition, uint64_t timeout_ns,
                              arroyo_udf_error* error) {
  (void)handle, (void)condition, (void)timeout_ns;
  return no_async(error);
}
static arroyo_udf_status arm(arroyo_udf_handle handle, uint32_t condition, void (*fn)(void* data), void* data,
                             arroyo_udf_error* error) {
  (void)handle, (void)condition, (void)fn, (void)data;
  return no_async(error);
}
static arroyo_udf_status disarm(arroyo_udf_handle handle, arroyo_udf_error* error) {
  (void)handle;
  return no_async(error);
}
static arroyo_udf_status cancel(arroyo_udf_handle handle, uint64_t first_id, uint64_t rows, arroyo_udf_error* error) {
  (void)handle, (void)first_id, (void)rows;
  return no_async(error);
}
static arroyo_udf_status statistics(arroyo_udf_handle handle, arroyo_udf_statistics* counters,
                                    arroyo_udf_error* error) {
  (void)handle, (void)counters;
  return no_async(error);
}
static arroyo_udf_status stop_runtime(arroyo_udf_handle handle, uint32_t mode, uint64_t deadline_ns,
                                      arroyo_udf_error* error) {
  (void)handle, (void)mode, (void)deadline_ns;
  return no_async(error);
}
static arroyo_udf_status release(arroyo_udf_handle handle, arroyo_udf_error* error) {
  (void)handle;
  return no_async(error);
}
static arroyo_udf_status set_log(arroyo_udf_handle handle, const arroyo_udf_log* log, arroyo_udf_error* error) {
  (void)handle, (void)log;
  return no_async(error);
}

static const void* extension(const char* id) { /* this plugin has none */
  (void)id;
  return NULL;
}

ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {
    .magic = ARROYO_UDF_MAGIC,
    .abi_version = ARROYO_UDF_ABI_VERSION,
    .table_size = sizeof(arroyo_udf_table),
    .describe = describe,
    .run = run,
    .start = start,
    .send = send,
    .drain_results = drain_results,
    .wait = wait,
    .arm = arm,
    .disarm = disarm,
    .cancel = cancel,
    .statistics = statistics,
    .stop_runtime = stop_runtime,
    .release = release,
    .set_log = set_log,
    .extension = extension,
};
