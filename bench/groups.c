/* An aggregate in C, to be measured beside an engine's own. */
#include "arroyo_udf_plugin.h"

typedef struct {
  int64_t sum, count;
} own_sum_state;

static const char* own_sum_update(own_sum_state* state, int64_t value) {
  state->sum += value;
  state->count++;
  return NULL;
}

static const char* own_sum_merge(own_sum_state* state, const own_sum_state* other) {
  state->sum += other->sum;
  state->count += other->count;
  return NULL;
}

static const char* own_sum_finish(const own_sum_state* state, int64_t* out) {
  if (state->count == 0) return arroyo_udf_null;
  *out = state->sum;
  return NULL;
}
ARROYO_UDF_AGGREGATE(own_sum, nullable_int64, (int64, value));

ARROYO_UDF_PLUGIN(own_sum);
