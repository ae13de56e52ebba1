/* Dereferences NULL for one row in a thousand.
 *
 *     arroyo-udf run examples/crash/udf.c rows.csv --args x --out out.csv --isolation process --on-error null
 *
 * Each crash costs its row: the worker process dies, and the next one goes on with the row after it. With isolation
 * `thread`, the first crash would end the run.
 */
#include "arroyo_udf_plugin.h"

static const char* next(int64_t x, int64_t* out) {
  const int64_t* const from = x % 1000 == 500 ? NULL : &x;
  *out = *(const volatile int64_t*)from + 1;
  return NULL;
}
ARROYO_UDF_FUNCTION(next, int64, (int64, x));
ARROYO_UDF_PLUGIN(next);
