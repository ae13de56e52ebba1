/* native_batches.h: the rows of a batch in functions that were compiled to C: how arguments are read, results written,
 * and rows deferred. native.c, which is generated, has the loops; native_run.c and native_fused.c do the rest. With
 * NATIVE_ALONE there is no Python, and rows that are deferred fail (native_alone.h).
 *
 * ASSUMES     Every text argument of a row that is deferred has been read by native_load. */
#ifndef NATIVE_BATCHES_H
#define NATIVE_BATCHES_H

#include "arroyo_udf_plugin.h"
#include "native_dates.h"
#include "native_table.h"

typedef enum native_outcome { NATIVE_VALUE, NATIVE_NULL, NATIVE_DEFERRED } native_outcome;

/* A row with more turns of loops is deferred: Python can be interrupted there. */
#define NATIVE_MOST_TURNS 1000000

#define NATIVE_MOST_ARGUMENTS ARROYO_UDF_C_MOST_ARGUMENTS

typedef struct native_counters {
  uint64_t rows;     /* that came in */
  uint64_t deferred; /* that Python ran */
} native_counters;

struct native_function {
  const char *shown; /* "plugin.function" */
  char returns;      /* the format of its result */
  const struct ArrowSchema *values;            /* the type of results: {value} */
  const struct ArrowSchema *values_and_errors; /* {value, outcome, error} */
  native_counters *counters;
  /* As in arroyo_udf_c_function. */
  void (*rows)(const arroyo_udf_c_column *columns, arroyo_udf_c_result *result, int64_t first, int64_t count,
               uint64_t wanted);
};

/* What is known of a batch while its rows are run. */
typedef struct native_batch {
  native_arena arena;
  int64_t length;     /* rows */
  int64_t first;      /* the row that is row 0 of results, which may be those of a part */
  int64_t end;        /* of that part; 0: results are those of the batch */
  uint64_t *deferred; /* a bit for each row; NULL: none is deferred */
  int64_t n_deferred;
  bool is_dropped; /* Python runs all rows */
  const char *shown; /* as in native_function; with NATIVE_ALONE */
} native_batch;

NATIVE native_batch *native_batch_of(arroyo_udf_c_result *result) { return (native_batch *)result->caller; }

/* ---- Rows that C does not run ----------------------------------------------------------------------------------- */

#ifdef NATIVE_ALONE
#include "native_alone.h"
#else

/* Before and after rows of a batch are run. */
#define NATIVE_BEGIN(result, shown) \
  if (native_batch_of(result)->is_dropped) return
#define NATIVE_END(result, count, counters)

/* Notes that Python must run a row. True: go on. */
__attribute__((noinline, cold)) static bool native_defer(arroyo_udf_c_result *result, int64_t row, native_arena *arena) {
  native_batch *const batch = native_batch_of(result);
  if (batch->deferred == NULL) batch->deferred = (uint64_t *)calloc((size_t)arroyo_udf_c_words(batch->length), 8);
  if (batch->deferred == NULL) return batch->is_dropped = true, false;
  row += batch->first;
  batch->deferred[row / 64] |= UINT64_C(1) << (row % 64);
  batch->n_deferred++;
  batch->is_dropped = batch->n_deferred > 64 && batch->n_deferred * 2 > (row < batch->end ? batch->end : row);
  return !batch->is_dropped;
}

/* A text cannot be read, and Python says why. True: go on with the next row. */
NATIVE bool native_unreadable(arroyo_udf_c_result *result, arroyo_udf_c_column column, int64_t row) {
  native_batch_of(result)->is_dropped = true;
  return false;
}

#endif

/* ---- Arguments and results of a row ----------------------------------------------------------------------------- */

/* A text as an argument. False: it cannot be read. */
NATIVE bool native_load(arroyo_udf_c_column column, int64_t row, native_text *out) {
  if (arroyo_udf_c_check_text(column, row) != NULL) return false;
  const arroyo_udf_utf8 view = arroyo_udf_c_view(column, row);
  const char *const end = column.text + column.ascii_end;
  const bool is_known = column.text + column.ascii_start <= view.data && view.data + view.length <= end;
  *out = (native_text){view.data, (int64_t)view.length, is_known || arroyo_udf_c_is_ascii(view.data, view.length)};
  return true;
}

NATIVE bool native_store_text(arroyo_udf_c_result *result, int64_t row, native_text text) {
  if (arroyo_udf_c_append(&result->text, text.data, (size_t)text.length) != NULL) return false;
  ((int32_t *)result->values)[row + 1] = (int32_t)result->text.length;
  return true;
}

/* Writes what stands for a value in a row without one. */
NATIVE void native_skip(arroyo_udf_c_result *result, int64_t row, char format) {
  if (arroyo_udf_c_has_offsets(format)) ((int32_t *)result->values)[row + 1] = ((int32_t *)result->values)[row];
  if (arroyo_udf_c_has_offsets(format) || format == 'b') return;
  const int64_t width = arroyo_udf_c_value_bits(format) / 8;
  memset((char *)result->values + row * width, 0, (size_t)width);
}

/* Whether these are rows of so many columns. `outer`: the validity of the rows themselves. */
NATIVE bool native_are_rows(const struct ArrowArray *rows, int64_t n_columns, const uint8_t **outer) {
  return rows != NULL && rows->release != NULL && rows->n_children == n_columns && rows->children != NULL &&
         rows->n_buffers == 1 && rows->buffers != NULL && rows->dictionary == NULL && rows->length > 0 &&
         rows->offset >= 0 && rows->offset <= INT64_MAX - rows->length && arroyo_udf_c_validity(rows, outer);
}

#endif /* NATIVE_BATCHES_H */
