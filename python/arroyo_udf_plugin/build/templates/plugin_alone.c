/* A plugin written in Python whose functions are all native, without Python (--no-python). It is made of this file,
 * `plugin_data.h`, which is generated and has the descriptor, and native.c, which has the functions.
 *
 * GUARANTEES  The library needs the C library, and nothing of Python. A row that only Python could run fails.
 * ASSUMES     All functions are sync. */
#include <string.h>
#include "arroyo_udf_c_slots.h"
#include "native_table.h"
#include "plugin_data.h"

static arroyo_udf_status refuse(arroyo_udf_status status, const char *text, arroyo_udf_error *error) {
  if (error && error->size >= ARROYO_UDF_ERROR_SIZE_1) error->text = text; /* constant: no release */
  return status;
}

static const arroyo_udf_descriptor *describe(void) { return &DESCRIPTOR; }

static arroyo_udf_status run(uint32_t function, struct ArrowArray *arguments, const arroyo_udf_batch_context *context,
                             struct ArrowArray *results, const struct ArrowSchema **schema, arroyo_udf_error *error) {
  if (function >= DESCRIPTOR.n_functions)
    return refuse(ARROYO_UDF_INVALID_ARGUMENT, "plugin \"" PLUGIN_NAME "\": no function has this number, see describe",
                  error);
  return native_run_alone(function, FUNCTIONS[function], arguments, context, results, schema, error);
}

static arroyo_udf_status only_run(arroyo_udf_error *error) {
  return refuse(ARROYO_UDF_NOT_IMPLEMENTED,
                "plugin \"" PLUGIN_NAME "\": was built with --no-python and has only sync functions: call them "
                "through run",
                error);
}

static arroyo_udf_status start(uint32_t function, const arroyo_udf_options *options, arroyo_udf_handle *handle,
                               arroyo_udf_error *error) {
  return only_run(error);
}

#define REFUSE(slot, parameters, arguments) \
  static arroyo_udf_status refuse_##slot parameters { return only_run(error); }
#define REFUSED(slot, parameters, arguments) .slot = refuse_##slot,

ARROYO_UDF_C_SLOTS(REFUSE)

static void count_native(uint32_t function, uint64_t *rows, uint64_t *deferred) {
  *rows = *deferred = 0;
  if (function < DESCRIPTOR.n_functions) native_count_rows(function, rows, deferred);
}

static const arroyo_udf_native NATIVE_FUNCTIONS = {
    .size = sizeof(arroyo_udf_native),
    .n_functions = sizeof NOT_NATIVE / sizeof *NOT_NATIVE,
    .reasons = NOT_NATIVE,
    .count = count_native,
};

static const void *extension(const char *id) { return id && !strcmp(id, "native/1") ? &NATIVE_FUNCTIONS : NULL; }

ARROYO_UDF_EXPORT const arroyo_udf_table arroyo_udf_plugin = {
    .magic = ARROYO_UDF_MAGIC,
    .abi_version = ARROYO_UDF_ABI_VERSION,
    .table_size = sizeof(arroyo_udf_table),
    .describe = describe,
    .run = run,
    .start = start,
    ARROYO_UDF_C_SLOTS(REFUSED)
    .extension = extension,
};
