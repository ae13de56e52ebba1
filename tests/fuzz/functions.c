/* What the fuzzer calls in C: functions that answer what they got. Their names say what (tests/fuzz/plugin_host.py). */
#include "arroyo_udf_async.h"

#define SAME(type, c_type)                                        \
  static const char* same_##type(c_type x, c_type* out) {         \
    *out = x;                                                     \
    return NULL;                                                  \
  }                                                               \
  ARROYO_UDF_FUNCTION(same_##type, type, (type, x))
SAME(bool, bool);
SAME(int8, int8_t);
SAME(int32, int32_t);
SAME(int64, int64_t);
SAME(float64, double);

static const char* same_utf8(arroyo_udf_utf8 x, arroyo_udf_text* out) {
  arroyo_udf_append(out, x.data, x.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(same_utf8, utf8, (utf8, x));

static const char* same_nullable_utf8(arroyo_udf_nullable_utf8 x, arroyo_udf_text* out) {
  if (x.is_null) return arroyo_udf_null;
  arroyo_udf_append(out, x.value.data, x.value.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(same_nullable_utf8, nullable_utf8, (nullable_utf8, x));

static const char* last(int64_t a, arroyo_udf_nullable_utf8 b, int16_t c, arroyo_udf_utf8 d, arroyo_udf_text* out) {
  (void)a, (void)b, (void)c;
  arroyo_udf_append(out, d.data, d.length);
  return NULL;
}
ARROYO_UDF_FUNCTION(last, utf8, (int64, a), (nullable_utf8, b), (int16, c), (utf8, d));

/* The sum of x, and the bytes of y, of the rows in which x is not null. */
typedef struct {
  uint64_t sum, bytes;
} total_state;
static const char* total_update(total_state* state, int64_t x, arroyo_udf_nullable_utf8 y) {
  state->sum += (uint64_t)x;
  if (!y.is_null) state->bytes += y.value.length;
  return NULL;
}
static const char* total_merge(total_state* state, const total_state* other) {
  state->sum += other->sum;
  state->bytes += other->bytes;
  return NULL;
}
static const char* total_finish(const total_state* state, uint64_t* out) {
  *out = state->sum ^ state->bytes;
  return NULL;
}
ARROYO_UDF_AGGREGATE(total, uint64, (int64, x), (nullable_utf8, y));

ARROYO_UDF_TABLE_FUNCTION(rows_of, ((nullable_utf8, text), (bool, flag)), (nullable_utf8, text), (bool, flag));
static const char* rows_of(arroyo_udf_nullable_utf8 text, bool flag, rows_of_rows* out) {
  rows_of_emit(out, text, flag);
  rows_of_emit(out, text, !flag);
  return NULL;
}

static void async_same_int64(const arroyo_udf_call* call, int64_t x) { arroyo_udf_complete_int64(call->token, x); }
ARROYO_UDF_ASYNC_FUNCTION(async_same_int64, (), int64, (int64, x));

static void async_same_utf8(const arroyo_udf_call* call, arroyo_udf_utf8 x) {
  arroyo_udf_complete_utf8(call->token, x.data, x.length);
}
ARROYO_UDF_ASYNC_FUNCTION(async_same_utf8, (), utf8, (utf8, x));

static void async_last(const arroyo_udf_call* call, int64_t a, arroyo_udf_nullable_utf8 b, int16_t c,
                       arroyo_udf_utf8 d) {
  (void)a, (void)b, (void)c;
  arroyo_udf_complete_utf8(call->token, d.data, d.length);
}
ARROYO_UDF_ASYNC_FUNCTION(async_last, (), utf8, (int64, a), (nullable_utf8, b), (int16, c), (utf8, d));

ARROYO_UDF_PLUGIN(same_bool, same_int8, same_int32, same_int64, same_float64, same_utf8, same_nullable_utf8, last,
                  async_same_int64, async_same_utf8, async_last, total, rows_of);
