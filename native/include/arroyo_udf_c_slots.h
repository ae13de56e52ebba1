/* arroyo_udf_c_slots.h: the slots of a started function as a list, for C code that treats all of them alike. Private to
 * the toolkit. A slot that is added to arroyo_udf_table is added here too, and then needs no other C code.
 *
 * ARROYO_UDF_C_SLOTS(each) makes each(slot, (parameters), (arguments)) for every slot that takes a handle, in the order
 * of the table. */
#ifndef ARROYO_UDF_C_SLOTS_H
#define ARROYO_UDF_C_SLOTS_H

#include "arroyo_udf.h"

#include <assert.h>

#define ARROYO_UDF_C_SLOTS(each)                                                                                    \
  each(send, (arroyo_udf_handle handle, uint64_t first_id, struct ArrowArray* arguments,                            \
              const arroyo_udf_batch_context* context, arroyo_udf_error* error),                                    \
       (handle, first_id, arguments, context, error))                                                               \
  each(drain_results,                                                                                               \
       (arroyo_udf_handle handle, uint64_t max_rows, struct ArrowArray* results, const struct ArrowSchema** schema, \
        arroyo_udf_error* error),                                                                                   \
       (handle, max_rows, results, schema, error))                                                                  \
  each(wait, (arroyo_udf_handle handle, uint32_t condition, uint64_t timeout_ns, arroyo_udf_error* error),          \
       (handle, condition, timeout_ns, error))                                                                      \
  each(arm, (arroyo_udf_handle handle, uint32_t condition, void (*fn)(void* data), void* data,                      \
             arroyo_udf_error* error),                                                                              \
       (handle, condition, fn, data, error))                                                                        \
  each(disarm, (arroyo_udf_handle handle, arroyo_udf_error* error), (handle, error))                                \
  each(cancel, (arroyo_udf_handle handle, uint64_t first_id, uint64_t rows, arroyo_udf_error* error),               \
       (handle, first_id, rows, error))                                                                             \
  each(statistics, (arroyo_udf_handle handle, arroyo_udf_statistics* statistics, arroyo_udf_error* error),          \
       (handle, statistics, error))                                                                                 \
  each(stop_runtime, (arroyo_udf_handle handle, uint32_t mode, uint64_t deadline_ns, arroyo_udf_error* error),      \
       (handle, mode, deadline_ns, error))                                                                          \
  each(release, (arroyo_udf_handle handle, arroyo_udf_error* error), (handle, error))                               \
  each(set_log, (arroyo_udf_handle handle, const arroyo_udf_log* log, arroyo_udf_error* error),                     \
       (handle, log, error))

#define ARROYO_UDF_C_ONE(slot, parameters, arguments) +sizeof(((arroyo_udf_table*)0)->slot)
static_assert(offsetof(arroyo_udf_table, send) ARROYO_UDF_C_SLOTS(ARROYO_UDF_C_ONE) ==
                  offsetof(arroyo_udf_table, extension),
              "ARROYO_UDF_C_SLOTS must list every slot from `send` to `set_log`");
#undef ARROYO_UDF_C_ONE

#endif /* ARROYO_UDF_C_SLOTS_H */
