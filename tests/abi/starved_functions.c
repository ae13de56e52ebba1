/* For starved.c: a function of each kind, which returns its argument plus one. */
#include "arroyo_udf_async.h"

static const char* now(int64_t x, int64_t* out) {
  *out = x + 1;
  return NULL;
}
ARROYO_UDF_FUNCTION(now, int64, (int64, x));

static void soon(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x + 1); }
ARROYO_UDF_ASYNC_FUNCTION(soon, (), int64, (int64, x));

ARROYO_UDF_PLUGIN(now, soon);
