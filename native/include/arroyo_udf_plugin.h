/* arroyo_udf_plugin.h: functions written in C. One .c file that includes this header is a plugin; no library is linked
 * to it.
 *
 *     #include "arroyo_udf_plugin.h"
 *
 *     static const char* mph(int64_t distance, int64_t air_time, double* out) {
 *       *out = (double)distance * 60.0 / (double)air_time;
 *       return NULL;
 *     }
 *     ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));
 *     ARROYO_UDF_PLUGIN(mph);
 *
 * The function is plain, synchronous C. It takes one row and writes the row's value to *out, which is zero or empty
 * when the call begins. It returns NULL if the row has a value; the text of an error if it failed (arroyo_udf_failure
 * formats one); or arroyo_udf_null if the value is null, which its result type must allow. The text is read before the
 * next call. Several threads may call the function at once.
 *
 *   declared as      argument                          out
 *   bool             bool                              bool*
 *   int8 ... uint64  int8_t ... uint64_t               int8_t* ... uint64_t*
 *   float32 float64  float, double                     float*, double*
 *   utf8             arroyo_udf_utf8: data and         arroyo_udf_text*: append to it with arroyo_udf_append
 *                    length, no zero at the end
 *   nullable_T       arroyo_udf_nullable_T: `value`    as for T
 *                    and `is_null`
 *
 * If an engine passes a text as a constant, it has the same address in all rows of a batch: compare data and length with
 * those of the row before to keep what you make of it. (Copy the text: memory of a batch that is gone is used again.)
 *
 * A null in an argument that is not nullable makes the result null; the function is not called. A function has 1 to 16
 * arguments, a plugin 1 to 16 functions. A declaration that does not match the function is a compiler error
 * ("conflicting types"). For functions that wait for something, see arroyo_udf_async.h.
 *
 * AGGREGATES take the rows of a group, and give one value. The state of a group is plain data, without pointers: it
 * begins as zeros, and hosts copy it, keep it, and hand it to other processes that have loaded this build.
 *
 *     typedef struct { double logs; int64_t count; } geometric_mean_state;
 *
 *     static const char* geometric_mean_update(geometric_mean_state* state, double value) {     once for each row
 *       if (value <= 0) return arroyo_udf_failure("%g is not positive", value);
 *       state->logs += log(value);
 *       state->count++;
 *       return NULL;
 *     }
 *     static const char* geometric_mean_merge(geometric_mean_state* state, const geometric_mean_state* other) {
 *       state->logs += other->logs;
 *       state->count += other->count;
 *       return NULL;
 *     }
 *     static const char* geometric_mean_finish(const geometric_mean_state* state, double* out) {
 *       if (state->count == 0) return arroyo_udf_null;
 *       *out = exp(state->logs / (double)state->count);
 *       return NULL;
 *     }
 *     ARROYO_UDF_AGGREGATE(geometric_mean, nullable_float64, (float64, value));
 *
 * A row with a null in an argument that is not nullable is left out. A group in which one row fails is an error.
 *
 * TABLE FUNCTIONS give any number of rows for one. Their columns have names, and the types that arguments have; the
 * declaration comes first, because it makes NAME_rows and NAME_emit, which adds a row.
 *
 *     ARROYO_UDF_TABLE_FUNCTION(letters, ((utf8, letter), (int64, place)), (utf8, text));
 *     static const char* letters(arroyo_udf_utf8 text, letters_rows* out) {
 *       for (size_t i = 0; i < text.length; i++) {
 *         const arroyo_udf_utf8 letter = {text.data + i, 1};
 *         letters_emit(out, letter, (int64_t)i);                  texts are copied
 *       }
 *       return NULL;
 *     }
 *
 * If the function fails, its rows are dropped. A null in an argument that is not nullable gives no rows.
 *
 * Names that begin with arroyo_udf_c_ are private to these headers.
 */
#ifndef ARROYO_UDF_PLUGIN_H
#define ARROYO_UDF_PLUGIN_H

#include "arroyo_udf.h"

#include <stdbool.h>

/* ---- Values ---------------------------------------------------------------------------------------------------- */

typedef struct arroyo_udf_utf8 {
  const char* data;
  size_t length; /* bytes */
} arroyo_udf_utf8;

/* The text of one row's result, while the function writes it. */
typedef struct arroyo_udf_text {
  struct arroyo_udf_c_buffer* buffer; /* of the whole batch: texts lie end to end */
  const char* failure;
} arroyo_udf_text;

/* Appends bytes to a result. If memory runs out, the row becomes an error. */
static inline void arroyo_udf_append(arroyo_udf_text* out, const char* data, size_t length);

/* The text of a row's error, formatted as by printf: at most 511 bytes, valid until this thread formats another. */
__attribute__((format(printf, 1, 2))) static inline const char* arroyo_udf_failure(const char* format, ...);

/* Return this if the value is null; it is compared by address. */
__attribute__((unused)) static const char arroyo_udf_null[] = "null";

/* ---- Declarations ---------------------------------------------------------------------------------------------- */

/* Write it after the function's definition, with its name, the type of its result, then (type, name) for each
 * argument. */
#define ARROYO_UDF_FUNCTION(name, result_type, ...) \
  ARROYO_UDF_DESCRIBED_FUNCTION(name, NULL, 0, result_type, __VA_ARGS__)

/* The same, with what engines show and rely on: a text for users (UTF-8; NULL: none), and what the result depends on:
 * ARROYO_UDF_IMMUTABLE, ARROYO_UDF_STABLE or ARROYO_UDF_VOLATILE (0: not said). */
#define ARROYO_UDF_DESCRIBED_FUNCTION(name, documentation, volatility, result_type, ...) \
  ARROYO_UDF_C_FUNCTION_(name, documentation, volatility, result_type, __VA_ARGS__)

/* Write it after NAME_state and the three functions of an aggregate, with its name, the type of its result, then (type,
 * name) for each argument. See AGGREGATES above. */
#define ARROYO_UDF_AGGREGATE(name, result_type, ...) \
  ARROYO_UDF_DESCRIBED_AGGREGATE(name, NULL, 0, result_type, __VA_ARGS__)

/* Write it before the function's definition, with its name, the columns of its rows, then (type, name) for each
 * argument. See TABLE FUNCTIONS above. */
#define ARROYO_UDF_TABLE_FUNCTION(name, columns, ...) \
  ARROYO_UDF_DESCRIBED_TABLE_FUNCTION(name, NULL, 0, columns, __VA_ARGS__)

/* As ARROYO_UDF_DESCRIBED_FUNCTION. */
#define ARROYO_UDF_DESCRIBED_AGGREGATE(name, documentation, volatility, result_type, ...) \
  ARROYO_UDF_C_AGGREGATE_(name, documentation, volatility, result_type, __VA_ARGS__)
#define ARROYO_UDF_DESCRIBED_TABLE_FUNCTION(name, documentation, volatility, columns, ...) \
  ARROYO_UDF_C_TABLE_FUNCTION_(name, documentation, volatility, columns, __VA_ARGS__)

/* Once, at the end of the file: all functions, in the order in which hosts see them. */
#define ARROYO_UDF_PLUGIN(...) ARROYO_UDF_C_PLUGIN(__VA_ARGS__)

/* ---- The implementation: each part needs those before it --------------------------------------------------------- */

#include "arroyo_udf_c_arrays.h"
#include "arroyo_udf_c_rows.h"
#include "arroyo_udf_c_results.h"
#include "arroyo_udf_c_types.h"
#include "arroyo_udf_c_functions.h"
#include "arroyo_udf_c_aggregates.h"
#include "arroyo_udf_c_table_functions.h"
#include "arroyo_udf_c_table.h"

#endif /* ARROYO_UDF_PLUGIN_H */
