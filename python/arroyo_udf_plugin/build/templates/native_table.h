/* native_table.h: the functions of a Python source that were compiled to C (native.c), for the rest of the plugin. */
#ifndef NATIVE_TABLE_H
#define NATIVE_TABLE_H

#include "arroyo_udf.h"

/* How the plugin runs a batch in Python: as `run` of arroyo_udf_table. */
typedef arroyo_udf_status (*native_python_run)(uint32_t function, struct ArrowArray *arguments,
                                               const arroyo_udf_batch_context *context, struct ArrowArray *results,
                                               const struct ArrowSchema **schema, arroyo_udf_error *error);

/* One function. */
typedef struct native_function native_function;

/* For each function of the descriptor the one in C; NULL: it is not native. */
extern const native_function *const native_functions[];

/* `run` of arroyo_udf_table, of function number `number`, which is native. */
arroyo_udf_status native_run(uint32_t number, const arroyo_udf_function *described, struct ArrowArray *arguments,
                             const arroyo_udf_batch_context *context, struct ArrowArray *results,
                             const struct ArrowSchema **schema, arroyo_udf_error *error, native_python_run python);

/* The same, in a library without Python (native_alone.h). */
arroyo_udf_status native_run_alone(uint32_t number, const arroyo_udf_function *described, struct ArrowArray *arguments,
                                   const arroyo_udf_batch_context *context, struct ArrowArray *results,
                                   const struct ArrowSchema **schema, arroyo_udf_error *error);

/* `run_fused` of arroyo_udf_native. described: all functions, n_functions of them. */
arroyo_udf_status native_run_fused(const arroyo_udf_function *const *described, uint32_t n_functions,
                                   const arroyo_udf_fused_call *calls, uint32_t n_calls,
                                   const struct ArrowArray *columns, struct ArrowArray *results, uint64_t *deferred,
                                   uint64_t *counts, arroyo_udf_error *error);

/* What `count` of arroyo_udf_native tells of a function that is native. */
void native_count_rows(uint32_t number, uint64_t *rows, uint64_t *deferred);

#endif /* NATIVE_TABLE_H */
