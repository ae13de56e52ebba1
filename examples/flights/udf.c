/* Functions over flights, in C. Each takes one row. If an argument is null, so is the result, without a call. */
#include "arroyo_udf_plugin.h"

/* Miles and minutes to miles per hour. */
static const char* mph(int64_t distance, int64_t air_time, double* out) {
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL; /* or a text: the row's error */
}
ARROYO_UDF_FUNCTION(mph, float64, (int64, distance), (int64, air_time));

/* A tail number for this report: UA-14228 for N14228, capitals for American Airlines, else with a question mark. */
static const char* tail(arroyo_udf_utf8 carrier, arroyo_udf_utf8 tailnum, arroyo_udf_text* out) {
  if (tailnum.length > 0 && tailnum.data[0] == 'N') {
    arroyo_udf_append(out, carrier.data, carrier.length);
    arroyo_udf_append(out, "-", 1);
    arroyo_udf_append(out, tailnum.data + 1, tailnum.length - 1);
  } else if (carrier.length == 2 && memcmp(carrier.data, "AA", 2) == 0) {
    for (size_t i = 0; i < tailnum.length; i++) {
      const char letter = tailnum.data[i];
      const char capital = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
      arroyo_udf_append(out, &capital, 1);
    }
  } else {
    arroyo_udf_append(out, tailnum.data, tailnum.length);
    arroyo_udf_append(out, "?", 1);
  }
  return NULL;
}
ARROYO_UDF_FUNCTION(tail, utf8, (utf8, carrier), (utf8, tailnum));

ARROYO_UDF_PLUGIN(mph, tail);
