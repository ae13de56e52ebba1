#include "arroyo_udf_plugin.h"

/* Miles and minutes to miles per hour. If an argument is null, so is the result; the function is not called. */
static const char* mph(int64_t distance, int64_t air_time, double* out) {
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL; /* or a text: the row's error */
}
ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));

ARROYO_UDF_PLUGIN(mph);
