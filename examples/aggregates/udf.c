/* An aggregate and a table function, for engines and queries: docs/functions.md. */
#include "arroyo_udf_plugin.h"
#include <math.h>

typedef struct {
  double logs;
  int64_t count;
} geometric_mean_state;

static const char* geometric_mean_update(geometric_mean_state* state, double value) {
  if (value <= 0) return arroyo_udf_failure("%g is not positive", value);
  state->logs += log(value);
  state->count++;
  return NULL;
}
static const char* geometric_mean_merge(geometric_mean_state* state, const geometric_mean_state* other) {
  state->logs += other->logs;
  state->count += other->count;
  return NULL;
}
static const char* geometric_mean_finish(const geometric_mean_state* state, double* out) {
  if (state->count == 0) return arroyo_udf_null;
  *out = exp(state->logs / (double)state->count);
  return NULL;
}
ARROYO_UDF_AGGREGATE(geometric_mean, nullable_float64, (float64, value));

ARROYO_UDF_TABLE_FUNCTION(words, ((utf8, word), (int64, place)), (utf8, text));
static const char* words(arroyo_udf_utf8 text, words_rows* out) {
  int64_t place = 0;
  for (size_t end, i = 0; i < text.length; i = end + 1) {
    for (end = i; end < text.length && text.data[end] != ' '; end++) continue;
    const arroyo_udf_utf8 word = {text.data + i, end - i};
    if (word.length > 0) words_emit(out, word, place++);
  }
  return NULL;
}

ARROYO_UDF_PLUGIN(geometric_mean, words);
