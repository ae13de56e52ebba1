/* A function of references.py as a plugin in C; two of texts, for what checks and validation cost; and one that works. */
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

/* FNV-1a. */
static const char* hash(arroyo_udf_utf8 text, uint64_t* out) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < text.length; i++) hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001B3);
  *out = hash;
  return NULL;
}
ARROYO_UDF_FUNCTION(hash, uint64, (utf8, text));

/* About two microseconds of work, which no compiler can shorten. */
static const char* two_us(uint64_t x, uint64_t* out) {
  for (int i = 0; i < 1500; i++) x = (x ^ (x >> 7)) * UINT64_C(0x100000001B3);
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(two_us, uint64, (uint64, x));

ARROYO_UDF_PLUGIN(mph, same, hash, two_us);
