/* A function of references.py as a plugin in C, and one that answers texts for the cost of their validation. */
#include "arroyo_udf_plugin.h"

static const char* mph(int64_t distance, int64_t air_time, double* out) {
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL;
}
ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));

static const char* same(arroyo_udf_utf8 x, arroyo_udf_text* out) {
  arroyo_udf_append(out, x.data, x.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(same, utf8, (utf8, x));

ARROYO_UDF_PLUGIN(mph, same);
