/* The function of references.py as a plugin in C. */
#include "arroyo_udf_plugin.h"

static const char* mph(int64_t distance, int64_t air_time, double* out) {
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL;
}
ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));

ARROYO_UDF_PLUGIN(mph);
