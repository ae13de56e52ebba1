/* For the tests of aggregates and table functions in C: states with numbers, texts and flags; rows with columns of all
 * kinds; and what fails. */
#include <math.h>

#include "arroyo_udf_plugin.h"

static const char* half(int64_t x, int64_t* out) {
  *out = x / 2;
  return NULL;
}
ARROYO_UDF_FUNCTION(half, int64, (int64, x));

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
ARROYO_UDF_DESCRIBED_AGGREGATE(geometric_mean, "The n-th root of a product.", ARROYO_UDF_IMMUTABLE, nullable_float64,
                               (float64, value));

/* The texts of a group, end to end, each with its number or "-": nineteen bytes, so that states are not aligned. */
typedef struct {
  char text[18];
  uint8_t length;
} joined_state;
static const char* join(joined_state* state, const char* text, size_t length) {
  if (state->length + length > sizeof state->text) return "the group is full";
  memcpy(state->text + state->length, text, length);
  state->length = (uint8_t)(state->length + length);
  return NULL;
}
static const char* joined_update(joined_state* state, arroyo_udf_utf8 word, arroyo_udf_nullable_int64 number) {
  char text[24];
  const int length = number.is_null ? snprintf(text, sizeof text, "-")
                                    : snprintf(text, sizeof text, "%lld", (long long)number.value);
  const char* const failure = join(state, word.data, word.length);
  return failure != NULL ? failure : join(state, text, (size_t)length);
}
static const char* joined_merge(joined_state* state, const joined_state* other) {
  return join(state, other->text, other->length);
}
static const char* joined_finish(const joined_state* state, arroyo_udf_text* out) {
  if (state->length == 2 && state->text[0] == 'x') return "x cannot stand alone";
  if (state->length == 2 && state->text[0] == 'n') return arroyo_udf_null;
  arroyo_udf_append(out, state->text, state->length);
  return NULL;
}
ARROYO_UDF_AGGREGATE(joined, utf8, (utf8, word), (nullable_int64, number));

typedef struct {
  bool any_false;
} all_true_state;
static const char* all_true_update(all_true_state* state, bool flag) {
  state->any_false |= !flag;
  return NULL;
}
static const char* all_true_merge(all_true_state* state, const all_true_state* other) {
  state->any_false |= other->any_false;
  return NULL;
}
static const char* all_true_finish(const all_true_state* state, bool* out) {
  *out = !state->any_false;
  return NULL;
}
ARROYO_UDF_AGGREGATE(all_true, bool, (bool, flag));

/* The words of a text, which blanks end. A word "bad" is not UTF-8, and after "stop" the call fails. */
ARROYO_UDF_TABLE_FUNCTION(words, ((utf8, word), (int64, place), (nullable_utf8, before), (bool, first)), (utf8, text));
static const char* words(arroyo_udf_utf8 text, words_rows* out) {
  arroyo_udf_nullable_utf8 before = {{NULL, 0}, true};
  arroyo_udf_utf8 word = {text.data, 0};
  int64_t place = 0;
  for (size_t i = 0; i < text.length; i++) {
    if (text.data[i] != ' ') {
      word.length++;
      continue;
    }
    if (word.length == 3 && memcmp(word.data, "bad", 3) == 0) word.data = "\xC3(";
    words_emit(out, word, place++, before, before.is_null);
    if (word.length == 4 && memcmp(word.data, "stop", 4) == 0) return "stopped";
    before.value = word;
    before.is_null = false;
    word.data = text.data + i + 1;
    word.length = 0;
  }
  return NULL;
}

/* `count` rows, of which every third one is null. */
ARROYO_UDF_DESCRIBED_TABLE_FUNCTION(counted, "The numbers from 0 on.", ARROYO_UDF_STABLE, ((nullable_int16, number)),
                                    (int64, count), (nullable_bool, odd));
static const char* counted(int64_t count, arroyo_udf_nullable_bool odd, counted_rows* out) {
  for (int64_t i = 0; i < count; i++) {
    const arroyo_udf_nullable_int16 number = {(int16_t)i, i % 3 == 2};
    if (odd.is_null || odd.value == (i % 2 == 1)) counted_emit(out, number);
  }
  return NULL;
}

ARROYO_UDF_PLUGIN(geometric_mean, words, half, joined, counted, all_true);
