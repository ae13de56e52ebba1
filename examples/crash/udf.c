/* A function with a bug: for one row in a thousand it reads through a NULL pointer; as `udf.py` beside this file.
 *
 * In a thread the first such row ends the whole process. With isolation="process" each of them costs itself alone.
 */
#include "arroyo_udf_plugin.h"

static const int64_t* found(const int64_t* number) { return *number % 1000 == 500 ? NULL : number; }

static const char* doubled(int64_t number, int64_t* out) {
  const volatile int64_t* entry = found(&number); /* volatile: the compiler may not reason the read away */
  *out = 2 * *entry;
  return NULL;
}
ARROYO_UDF_FUNCTION(doubled, int64, (int64, number));

ARROYO_UDF_PLUGIN(doubled);
