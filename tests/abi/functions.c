/* For the tests of arroyo_udf_plugin.h: one function of each type, with and without null, and some that fail. */
#include "arroyo_udf_plugin.h"

/* same_T(T) -> T and or_null_T(nullable_T) -> nullable_T return their argument. */
#define SAME(word, type)                                                                \
  static const char* same_##word(type x, type* out) {                                   \
    *out = x;                                                                           \
    return NULL;                                                                        \
  }                                                                                     \
  ARROYO_UDF_FUNCTION(same_##word, word, (word, x));                                    \
  static const char* or_null_##word(arroyo_udf_nullable_##word x, type* out) {          \
    *out = x.value;                                                                     \
    return x.is_null ? arroyo_udf_null : NULL;                                          \
  }                                                                                     \
  ARROYO_UDF_FUNCTION(or_null_##word, nullable_##word, (nullable_##word, x));

#if FIRST_HALF
SAME(int8, int8_t)
SAME(int16, int16_t)
SAME(int32, int32_t)
SAME(int64, int64_t)
SAME(uint8, uint8_t)
SAME(uint16, uint16_t)
ARROYO_UDF_PLUGIN(same_int8, or_null_int8, same_int16, or_null_int16, same_int32, or_null_int32, same_int64,
                  or_null_int64, same_uint8, or_null_uint8, same_uint16, or_null_uint16);
#else
SAME(uint32, uint32_t)
SAME(uint64, uint64_t)
SAME(float32, float)
SAME(float64, double)
/* Not through the macro above: there `bool` would be replaced before it is pasted into a name. */
static const char* same_bool(bool x, bool* out) {
  *out = x;
  return NULL;
}
ARROYO_UDF_FUNCTION(same_bool, bool, (bool, x));
static const char* or_null_bool(arroyo_udf_nullable_bool x, bool* out) {
  *out = x.value;
  return x.is_null ? arroyo_udf_null : NULL;
}
ARROYO_UDF_FUNCTION(or_null_bool, nullable_bool, (nullable_bool, x));

static const char* same_utf8(arroyo_udf_utf8 x, arroyo_udf_text* out) {
  arroyo_udf_append(out, x.data, x.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(same_utf8, utf8, (utf8, x));
static const char* or_null_utf8(arroyo_udf_nullable_utf8 x, arroyo_udf_text* out) {
  arroyo_udf_append(out, "lost when the row is null", x.is_null ? 25 : 0);
  arroyo_udf_append(out, x.value.data, x.value.length);
  return x.is_null ? arroyo_udf_null : NULL;
}
ARROYO_UDF_FUNCTION(or_null_utf8, nullable_utf8, (nullable_utf8, x));

/* Returns its arguments as a text. */
static const char* seen(int64_t a, arroyo_udf_nullable_int64 b, arroyo_udf_utf8 c, arroyo_udf_text* out) {
  char text[64];
  const int length = b.is_null ? snprintf(text, sizeof text, "%lld null ", (long long)a)
                               : snprintf(text, sizeof text, "%lld %lld ", (long long)a, (long long)b.value);
  arroyo_udf_append(out, text, (size_t)length);
  arroyo_udf_append(out, c.data, c.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(seen, utf8, (int64, a), (nullable_int64, b), (utf8, c));

/* Rows that fail: with a text, with a null that is not declared, and with bytes that are not UTF-8. */
static const char* fussy(int64_t x, arroyo_udf_text* out) {
  if (x % 5 == 1) return arroyo_udf_failure("%d is fussy \xC3\xA9", (int)x);
  if (x % 5 == 2) return arroyo_udf_null;
  if (x % 5 == 3) arroyo_udf_append(out, "\xC3(", 2);
  if (x % 5 == 4) return "cut at the first wrong byte\xFF here";
  arroyo_udf_append(out, "fine", 4);
  return NULL;
}
ARROYO_UDF_FUNCTION(fussy, utf8, (int64, x));

static const char* sum16(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f, uint32_t g, uint64_t h,
                         float i, double j, bool k, int64_t l, int64_t m, int64_t n, int64_t o, int64_t p, double* out) {
  *out = (double)a + b + c + (double)d + e + f + g + (double)h + (double)i + j + k + (double)(l + m + n + o + p);
  return NULL;
}
ARROYO_UDF_FUNCTION(sum16, float64, (int8, a), (int16, b), (int32, c), (int64, d), (uint8, e), (uint16, f), (uint32, g),
                    (uint64, h), (float32, i), (float64, j), (bool, k), (int64, l), (int64, m), (int64, n), (int64, o),
                    (int64, p));

ARROYO_UDF_PLUGIN(same_uint32, or_null_uint32, same_uint64, or_null_uint64, same_float32, or_null_float32, same_float64,
                  or_null_float64, same_bool, or_null_bool, same_utf8, or_null_utf8, seen, fussy, sum16);
#endif
