/* The functions of one.py and one.rs that C has. */
#include "arroyo_udf_plugin.h"

static const char* mph(int64_t distance, int64_t air_time, double* out) {
  if (air_time == 0) return "no time";
  *out = (double)distance * 60.0 / (double)air_time;
  return NULL;
}
ARROYO_UDF_DESCRIBED_FUNCTION(mph, "Miles per hour.", ARROYO_UDF_IMMUTABLE, float64, (int64, distance), (int64, air_time));

static const char* shout(arroyo_udf_utf8 text, arroyo_udf_text* out) {
  arroyo_udf_append(out, text.data, text.length);
  arroyo_udf_append(out, "!", 1);
  return NULL;
}
ARROYO_UDF_FUNCTION(shout, utf8, (utf8, text));

static const char* or_zero(arroyo_udf_nullable_int64 value, int64_t* out) {
  *out = value.is_null ? 0 : value.value;
  return NULL;
}
ARROYO_UDF_FUNCTION(or_zero, int64, (nullable_int64, value));

#define SAME(type, c_type)                                          \
  static const char* same_##type(c_type value, c_type* out) {       \
    *out = value;                                                   \
    return NULL;                                                    \
  }                                                                 \
  ARROYO_UDF_FUNCTION(same_##type, type, (type, value))

SAME(bool, bool);
SAME(int8, int8_t);
SAME(int16, int16_t);
SAME(int32, int32_t);
SAME(int64, int64_t);
SAME(uint8, uint8_t);
SAME(uint16, uint16_t);
SAME(uint32, uint32_t);
SAME(uint64, uint64_t);
SAME(float32, float);
SAME(float64, double);

ARROYO_UDF_PLUGIN(mph, shout, or_zero, same_bool, same_int8, same_int16, same_int32, same_int64, same_uint8, same_uint16,
                  same_uint32, same_uint64, same_float32, same_float64);
