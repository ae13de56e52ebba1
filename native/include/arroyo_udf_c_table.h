/* arroyo_udf_c_table.h: what ARROYO_UDF_PLUGIN makes of all functions: the descriptor, `run` and the table. A part of
 * arroyo_udf_plugin.h.
 *
 * The steps of aggregates stand behind all functions that the author has named, and an aggregate says where. No
 * constant expression can count them in C, nor find the texts among arguments, so this is done when the library is
 * opened; no code of the author runs. */
#ifndef ARROYO_UDF_C_TABLE_H
#define ARROYO_UDF_C_TABLE_H

#ifndef ARROYO_UDF_PLUGIN_H
#error "include arroyo_udf_plugin.h, of which this is a part"
#endif

#include "arroyo_udf_c_slots.h"

/* Fills in the lists, which have room, their length, and what functions say of themselves by it. */
static inline void arroyo_udf_c_number_functions(arroyo_udf_c_function* const* named, uint32_t n_named,
                                                 const arroyo_udf_c_function** functions,
                                                 const arroyo_udf_function** descriptions,
                                                 arroyo_udf_descriptor* descriptor) {
  uint32_t n = n_named;
  for (uint32_t i = 0; i < n_named; i++) {
    functions[i] = named[i];
    if (named[i]->function.kind == ARROYO_UDF_SYNC) {
      const struct ArrowSchema* const arguments = named[i]->function.arguments;
      for (int64_t k = 0; k < arguments->n_children; k++) /* texts cost something to repeat */
        named[i]->function.constants |= (uint64_t)(arguments->children[k]->format[0] == 'u') << k;
    }
    if (named[i]->steps == NULL) continue;
    named[i]->function.first_step = n;
    for (int step = 0; step < 3; step++) functions[n++] = named[i]->steps[step];
  }
  for (uint32_t i = 0; i < n; i++) descriptions[i] = &functions[i]->function;
  descriptor->n_functions = n;
}

#define ARROYO_UDF_C_FUNCTION_OF(x, name) &arroyo_udf_c_##name##_function

#define ARROYO_UDF_C_PLUGIN(...)                                                                               \
  static arroyo_udf_c_function* const arroyo_udf_c_named[] = {                                                 \
      ARROYO_UDF_C_EACH(ARROYO_UDF_C_FUNCTION_OF, ARROYO_UDF_C_COMMA, 0, __VA_ARGS__)};                        \
  static const arroyo_udf_c_function* arroyo_udf_c_functions[4 * ARROYO_UDF_C_COUNT(__VA_ARGS__)];             \
  static const arroyo_udf_function* arroyo_udf_c_descriptions[4 * ARROYO_UDF_C_COUNT(__VA_ARGS__)];            \
  static arroyo_udf_descriptor arroyo_udf_c_descriptor = {sizeof(arroyo_udf_descriptor),                       \
                                                          ARROYO_UDF_PLUGIN_NAME,                              \
                                                          "c",                                                 \
                                                          ARROYO_UDF_TOOLKIT_VERSION,                          \
                                                          ARROYO_UDF_PLUGIN_HASH,                              \
                                                          0,                                                   \
                                                          arroyo_udf_c_descriptions};                          \
  __attribute__((constructor)) static void arroyo_udf_c_when_opened(void) {                                    \
    arroyo_udf_c_number_functions(arroyo_udf_c_named, ARROYO_UDF_C_COUNT(__VA_ARGS__), arroyo_udf_c_functions, \
                                  arroyo_udf_c_descriptions, &arroyo_udf_c_descriptor);                        \
  }                                                                                                            \
  ARROYO_UDF_C_LINKAGE const arroyo_udf_c_plugin arroyo_udf_c_this_plugin = {&arroyo_udf_c_descriptor,         \
                                                                             arroyo_udf_c_functions};          \
  ARROYO_UDF_C_LINKAGE arroyo_udf_status arroyo_udf_c_run(uint32_t function, struct ArrowArray* arguments,     \
                                                          const arroyo_udf_batch_context* context,             \
                                                          struct ArrowArray* results,                          \
                                                          const struct ArrowSchema** schema,                   \
                                                          arroyo_udf_error* error) {                           \
    return arroyo_udf_c_run_function(&arroyo_udf_c_this_plugin, function, arguments, context, results,         \
                                     schema, error);                                                           \
  }                                                                                                            \
  ARROYO_UDF_C_TABLE

/* ---- The table of a plugin with sync functions only ------------------------------------------------------------- */

/* arroyo_udf_async.h replaces these two, because the runtime has the table of plugins with async functions. */
#define ARROYO_UDF_C_LINKAGE static
#define ARROYO_UDF_C_TABLE                                                                             \
  static const arroyo_udf_descriptor* arroyo_udf_c_describe(void) { return &arroyo_udf_c_descriptor; } \
  const arroyo_udf_table arroyo_udf_plugin = {                                                         \
      ARROYO_UDF_MAGIC,      ARROYO_UDF_ABI_VERSION, sizeof(arroyo_udf_table),                         \
      arroyo_udf_c_describe, arroyo_udf_c_run,       arroyo_udf_c_no_start,                            \
      ARROYO_UDF_C_SLOTS(ARROYO_UDF_C_NO_SLOT_OF) arroyo_udf_c_no_extension}

static inline arroyo_udf_status arroyo_udf_c_no_async(arroyo_udf_error* error) {
  return arroyo_udf_c_fail(error, ARROYO_UDF_NOT_IMPLEMENTED,
                           "plugin %s is written in C and has only sync functions: call them through run",
                           ARROYO_UDF_PLUGIN_NAME);
}
static inline arroyo_udf_status arroyo_udf_c_no_start(uint32_t function, const arroyo_udf_options* options,
                                                      arroyo_udf_handle* handle, arroyo_udf_error* error) {
  (void)function, (void)options, (void)handle;
  return arroyo_udf_c_no_async(error);
}
static inline const void* arroyo_udf_c_no_extension(const char* id) {
  (void)id;
  return NULL;
}
#define ARROYO_UDF_C_NO_SLOT_OF(slot, parameters, arguments) arroyo_udf_c_no_##slot,
#define ARROYO_UDF_C_NO_SLOT(slot, parameters, arguments) \
  static inline arroyo_udf_status arroyo_udf_c_no_##slot parameters { return arroyo_udf_c_no_async(error); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
ARROYO_UDF_C_SLOTS(ARROYO_UDF_C_NO_SLOT)
#pragma GCC diagnostic pop

#endif /* ARROYO_UDF_C_TABLE_H */
